// The pages as a site. A module of its own, so that the renderer is not among what
// Tidekeeper needs.
module tidekeeper.dev/tidekeeper/hack/site

go 1.26.0

require github.com/yuin/goldmark v1.8.7
