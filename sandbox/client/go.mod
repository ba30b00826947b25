module tidekeeper.dev/tidekeeper/sandbox/client

go 1.26.0
