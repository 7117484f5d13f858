module workloads

go 1.17
