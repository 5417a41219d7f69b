module listwatch/benchmarks/fanout

go 1.24
