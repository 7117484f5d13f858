# The viewer: an OTLP receiver with a page.
PROGRAMS += sconce-viewer
VIEWER_SRCS = viewer/text.c viewer/http.c viewer/admit.c viewer/workload_key.c viewer/workloads.c \
	viewer/copy.c viewer/slots.c viewer/functions.c viewer/intake.c viewer/ledgers.c viewer/api.c \
	viewer/assets.c viewer/footer.c viewer/pages.c
VIEWER_LIBS = -lmicrohttpd $(PROFILE_LIBS)
sconce-viewer_SRCS = viewer/main.c $(VIEWER_SRCS) $(PROFILE_SRCS) $(CHILD_SRCS) $(SANDBOX_SRCS)
sconce-viewer_LIBS = $(VIEWER_LIBS) $(SANDBOX_LIBS)
$(BUILD)/viewer/assets.o: $(wildcard viewer/page/*)
