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
	// unservedFor is the time for which the reader caches that the API server does not serve a
	// kind.
	unservedFor = time.Minute
	// maxUnserved is the maximum number of unserved kinds that a namespace may look up within
	// unservedFor. Each lookup triggers the discovery of an API group, and concurrent lookups wait
	// for each other.
	maxUnserved = 10
)

// Reader reads restart targets for all namespaces. It limits the lookups of kinds that are not
// served, since tenants choose the kinds of targets and may name any number of such kinds.
type Reader struct {
	client client.SubResourceClientConstructor
	clock  clock.PassiveClock
	// asking lets concurrent callers share a read of a kind that is not known yet to be served or
	// unserved.
	asking singleflight.Group

	mu sync.Mutex
	// since is the time at which unserved and misses were last reset. They are reset every
	// unservedFor.
	since time.Time
	// served is the set of kinds that a read has found to be served. unserved is the set of kinds
	// that the API server does not serve.
	served, unserved sets.Set[schema.GroupKind]
	// misses maps each namespace to the number of unserved kinds that were first looked up for a
	// target in that namespace.
	misses map[string]int
}

// NewReader returns a Reader that uses a client which discovers served kinds on demand.
func NewReader(c client.SubResourceClientConstructor, now clock.PassiveClock) *Reader {
	return &Reader{client: c, clock: now, served: sets.New[schema.GroupKind]()}
}

// Read is like the function [Read], but limits the cost of kinds that are not served.
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
	if err := Read(ctx, r.client, namespace, ref, in); err != nil {
		return err
	}
	if in.Unserved {
		r.retire(kind)
	}
	return nil
}

// retire marks a served kind as unserved, because its CRD was deleted. Otherwise each target of the
// kind would trigger a discovery at each read.
func (r *Reader) retire(kind schema.GroupKind) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.served.Delete(kind)
	r.unserved.Insert(kind)
}

// known reports whether the reader can determine without a request if the API server serves a kind.
// If known is true, "there" reports whether the kind is served; it is also false for a new kind if
// the namespace has reached maxUnserved.
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

// ask determines whether a kind is served by reading an object of that kind. Concurrent callers
// share one read.
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
