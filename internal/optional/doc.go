// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package optional is a cache of which some kinds may come and go: kinds whose CRD
// need not be installed when the manager starts, and may be removed while it runs.
//
//	cache.go      the cache: which reads and informers are of optional kinds
//	crds.go       when to ask the cluster again: the CRDs are watched, by name
//	kind.go       one optional kind: watched while the cluster serves it
//	informer.go   an informer that outlasts the CRD of its kind
//	changes.go    a source of requests for when a kind comes or goes
//
// A controller watches and reads an optional kind as any other. While the cluster does
// not serve the kind, reads return a [k8s.io/apimachinery/pkg/api/meta.NoKindMatchError],
// which is what a client without a cache returns.
package optional
