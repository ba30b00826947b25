// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/restart/decision"
)

const (
	// unservedFor is the time for which the reader remembers that a kind is not served.
	unservedFor = time.Minute
	// maxUnserved is the maximum number of unserved kinds that a namespace may look up in that time. Each
	// lookup discovers an API group, and concurrent lookups wait for each other.
	maxUnserved = 10
)

// Reader reads targets for all namespaces. Tenants choose the kinds, and may name any number of kinds that
// are not served.
type Reader struct {
	client client.SubResourceClientConstructor
	clock  clock.PassiveClock
	// asking deduplicates concurrent first reads of a kind.
	asking singleflight.Group

	mu sync.Mutex
	// since is the time of the last reset of unserved and misses, which happens every unservedFor.
	since time.Time
	// served has the kinds that the client has found, and unserved the kinds that the cluster does not serve.
	served, unserved sets.Set[schema.GroupKind]
	// misses counts, by namespace, the unserved kinds that the namespace was the first to look up.
	misses map[string]int
}

// NewReader returns a Reader with a client that discovers the served kinds.
func NewReader(c client.SubResourceClientConstructor, now clock.PassiveClock) *Reader {
	return &Reader{client: c, clock: now, served: sets.New[schema.GroupKind]()}
}

// Read does the same as the function [Read], but limits the cost of kinds that are not served.
func (r *Reader) Read(ctx context.Context, namespace string, ref tidekeeperv1.TargetRef, in *decision.Input) error {
	kind := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind()
	known, there := r.known(namespace, kind)
	if !known {
		var err error
		if there, err = r.ask(ctx, namespace, ref, kind); err != nil {
			return err
		}
	}
	if !there {
		in.Polled, in.Unserved = true, true
		return nil
	}
	return Read(ctx, r.client, namespace, ref, in)
}

// known reports whether the reader knows, without a request, if the API server serves a kind (known),
// and if it does (there).
func (r *Reader) known(namespace string, kind schema.GroupKind) (known, there bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := r.clock.Now(); r.unserved == nil || now.Sub(r.since).Abs() >= unservedFor {
		r.since, r.unserved, r.misses = now, sets.New[schema.GroupKind](), map[string]int{}
	}
	if r.served.Has(kind) {
		return true, true
	}
	return r.unserved.Has(kind) || r.misses[namespace] >= maxUnserved, false
}

// ask discovers whether a kind is served by reading an object, once for all concurrent callers.
func (r *Reader) ask(ctx context.Context, namespace string, ref tidekeeperv1.TargetRef, kind schema.GroupKind) (there bool, err error) {
	answer := r.asking.DoChan(kind.String(), func() (any, error) {
		if known, there := r.known(namespace, kind); known {
			return there, nil
		}
		var in decision.Input
		if err := Read(ctx, r.client, namespace, ref, &in); err != nil {
			return false, err
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if in.Unserved {
			r.unserved.Insert(kind)
			r.misses[namespace]++
		} else {
			r.served.Insert(kind)
		}
		return !in.Unserved, nil
	})
	select {
	case <-ctx.Done():
		return false, ctx.Err()
	case result := <-answer:
		return result.Err == nil && result.Val.(bool), result.Err
	}
}
