// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package optional provides a cache with optional kinds: kinds whose CRD need not be installed when
// the manager starts, and may be removed while it runs.
//
//	cache.go      the cache, which routes reads and informers of optional kinds
//	crds.go       the watch of CRDs, which triggers discovery requests
//	kind.go       an optional kind, watched while the cluster serves it
//	informer.go   an informer that survives the removal of its CRD
//	changes.go    a source of requests when the cluster starts or stops serving a kind
//
// A controller watches and reads an optional kind like any other kind. While the cluster does
// not serve the kind, reads return a [k8s.io/apimachinery/pkg/api/meta.NoKindMatchError], like
// a client without a cache.
package optional
