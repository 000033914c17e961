module operator

go 1.21
