# Sockets and configuration: linked into every process.
PROTO_SRCS = proto/channel.c proto/config.c
