// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package freeze

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/freeze/period"
)

// Reader provides freezes to controllers. If the controller "freeze" does not run there are
// none, because Freezes are not watched.
type Reader struct {
	cache, apiReader client.Reader
	clock            clock.PassiveClock
	watched          bool
	live             shared
	confirmed        confirmed
}

// NewReader returns a reader for a controller of the manager.
func NewReader(mgr ctrl.Manager, c clock.PassiveClock) *Reader {
	return &Reader{
		cache: mgr.GetCache(), apiReader: mgr.GetAPIReader(), clock: c,
		watched: Watched(mgr.GetCache(), &tidekeeperv1.FreezeList{}),
	}
}

// Watched reports whether any controller of a manager watches a kind, before or after its cache
// has started.
func Watched(reader client.Reader, list client.ObjectList) bool {
	notCached := (*cache.ErrResourceNotCached)(nil)
	return !errors.As(reader.List(context.Background(), list, client.Limit(1)), &notCached)
}

// Watched reports whether freezes are watched.
func (r *Reader) Watched() bool { return r.watched }

// In returns the periods of the freezes from the cache that select a namespace and have not
// ended. A freeze in force was confirmed by the API server at most a minute ago.
func (r *Reader) In(ctx context.Context, namespace string) ([]period.Period, error) {
	list, err := r.cached(ctx)
	if err != nil || len(list.Items) == 0 {
		return nil, err
	}
	return r.in(ctx, r.cache, list.Items, namespace)
}

// LiveIn is In with freezes from the API server, read at notBefore or later, and at most a
// second ago.
func (r *Reader) LiveIn(ctx context.Context, namespace string, notBefore time.Time) ([]period.Period, error) {
	if !r.watched {
		return nil, nil
	}
	items, err := r.live.list(ctx, r.apiReader, notBefore, r.clock)
	if err != nil {
		return nil, err
	}
	return r.in(ctx, r.apiReader, items, namespace)
}

// Anywhere returns the freeze in force that ends last, in any namespace, from the cache; nil if
// there is none.
func (r *Reader) Anywhere(ctx context.Context) (*period.Period, error) {
	list, err := r.cached(ctx)
	if err != nil {
		return nil, err
	}
	return period.InForce(periodsOf(list.Items), r.clock.Now()), nil
}

// LiveAnywhere is Anywhere with freezes that the API server returns now.
func (r *Reader) LiveAnywhere(ctx context.Context) (*period.Period, error) {
	return r.liveAnywhere(ctx, r.clock.Now())
}

// RecentlyAnywhere is Anywhere with freezes that the API server returned less than [SharedFor]
// ago, so that a thousand concurrent callers need a single read.
func (r *Reader) RecentlyAnywhere(ctx context.Context) (*period.Period, error) {
	return r.liveAnywhere(ctx, time.Time{})
}

func (r *Reader) liveAnywhere(ctx context.Context, notBefore time.Time) (*period.Period, error) {
	if !r.watched {
		return nil, nil
	}
	now := r.clock.Now()
	items, err := r.live.list(ctx, r.apiReader, notBefore, r.clock)
	if err != nil {
		return nil, err
	}
	return period.InForce(periodsOf(items), now), nil
}

func periodsOf(freezes []tidekeeperv1.Freeze) []period.Period {
	periods := make([]period.Period, len(freezes))
	for i := range freezes {
		periods[i] = period.Of(&freezes[i])
	}
	return periods
}

func (r *Reader) cached(ctx context.Context) (*tidekeeperv1.FreezeList, error) {
	list := &tidekeeperv1.FreezeList{}
	if !r.watched {
		return list, nil
	}
	if err := r.cache.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list freezes: %w", err)
	}
	list.Items = r.confirm(ctx, list.Items)
	return list, nil
}

// in returns the periods of the freezes that select a namespace. The namespace is read only if
// a selector depends on its labels.
func (r *Reader) in(ctx context.Context, reader client.Reader, freezes []tidekeeperv1.Freeze, namespace string) ([]period.Period, error) {
	now := r.clock.Now()
	labels := map[string]string{corev1.LabelMetadataName: namespace}
	for i := range freezes {
		if period.AppliesToAllNamespaces(&freezes[i]) || !now.Before(freezes[i].Spec.Until.Time) {
			continue
		}
		object := &corev1.Namespace{}
		if err := reader.Get(ctx, client.ObjectKey{Name: namespace}, object); err == nil {
			labels = object.Labels
		} else if !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("get the labels of the namespace %s: %w", namespace, err)
		}
		break
	}
	return period.In(freezes, labels, now), nil
}
