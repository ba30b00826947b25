// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package index defines the indexes on the manager's shared cache. The type Index is in index.go;
// the indexes of each kind are in pods.go, nodes.go and restarts.go.
//
// A controller lists the indexes that it needs in its definition. It queries an index with
// client.MatchingFields:
//
//	c.List(ctx, &pods, client.MatchingFields{index.PodController: string(replicaSet.UID)})
package index

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Index declares an index on a kind's objects in the cache, by values that are computed from each
// object.
type Index struct {
	// Field is the index's name, for client.MatchingFields.
	Field string
	// Object is an empty object of the indexed kind.
	Object client.Object
	// Values returns an object's values in the index. An object without values takes no memory in
	// the index.
	Values client.IndexerFunc
}

// AddTo adds the index to the cache.
func (i Index) AddTo(ctx context.Context, indexer client.FieldIndexer) error {
	if err := indexer.IndexField(ctx, i.Object, i.Field, i.Values); err != nil {
		return fmt.Errorf("index %T by %s: %w", i.Object, i.Field, err)
	}
	return nil
}
