// What it requires depends on the release of Kubernetes: see versions/.
module tidekeeper.dev/tidekeeper/sandbox/kubernetes

go 1.26.0
