# Sockets and configuration: linked into every process. Only the cli makes a configuration.
PROTO_CORE_SRCS = proto/channel.c proto/config.c
PROTO_SRCS = $(PROTO_CORE_SRCS) proto/config_defaults.c
