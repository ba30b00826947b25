// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package index defines the indexes on the shared cache: index.go the type of an index, and
// pods.go, nodes.go and restarts.go the indexes of each kind.
//
// A controller lists the indexes that it needs in its definition, and uses an index with
// client.MatchingFields:
//
//	c.List(ctx, &pods, client.MatchingFields{index.PodController: string(replicaSet.UID)})
package index

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Index finds objects of a kind in the cache by a value computed from them.
type Index struct {
	// Field is the name of the index for lists.
	Field string
	// Object is an object of the indexed kind.
	Object client.Object
	// Values returns the values under which an object is found. An object without values takes
	// no memory in the index.
	Values client.IndexerFunc
}

// AddTo adds the index to the cache.
func (i Index) AddTo(ctx context.Context, indexer client.FieldIndexer) error {
	if err := indexer.IndexField(ctx, i.Object, i.Field, i.Values); err != nil {
		return fmt.Errorf("index %T by %s: %w", i.Object, i.Field, err)
	}
	return nil
}
