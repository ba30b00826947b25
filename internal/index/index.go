// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package index defines the indexes on the shared cache: index.go what an index is,
// pods.go, nodes.go and restarts.go those of each kind.
//
// A controller names the indexes that it needs in its definition, and lists through
// one with client.MatchingFields:
//
//	c.List(ctx, &pods, client.MatchingFields{index.PodController: string(replicaSet.UID)})
package index

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Index finds objects of one kind in the cache by a value computed from them.
type Index struct {
	// Field is the name to list by.
	Field string
	// Object is an object of the indexed kind.
	Object client.Object
	// Values returns the values under which an object is found. An object without
	// values takes no room in the index.
	Values client.IndexerFunc
}

// AddTo adds the index to the cache.
func (i Index) AddTo(ctx context.Context, indexer client.FieldIndexer) error {
	if err := indexer.IndexField(ctx, i.Object, i.Field, i.Values); err != nil {
		return fmt.Errorf("index %T by %s: %w", i.Object, i.Field, err)
	}
	return nil
}
