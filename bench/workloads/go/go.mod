module workloads

go 1.21
