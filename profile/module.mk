# A merged profile in memory, and its formats. Linked into the exporter and the viewer:
# PROFILE_SRCS for the profile and OTLP, PROFILE_FILE_SRCS in addition to write folded and pprof files.
PROFILE_SRCS = profile/table.c profile/profile.c profile/otlp_encode.c profile/otlp_decode.c \
	$(OTLP_SRCS)
PROFILE_FILE_SRCS = profile/folded.c profile/pprof.c $(PPROF_SRCS)
PROFILE_LIBS = -lprotobuf-c -lz
