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

// Reader provides Freezes to other controllers. If the controller "freeze" is not enabled, Freezes
// are not watched and the reader returns none.
type Reader struct {
	cache, apiReader client.Reader
	clock            clock.PassiveClock
	watched          bool
	live             shared
	confirmed        confirmed
}

// NewReader returns a reader for a controller of the given manager.
func NewReader(mgr ctrl.Manager, c clock.PassiveClock) *Reader {
	return &Reader{
		cache: mgr.GetCache(), apiReader: mgr.GetAPIReader(), clock: c,
		watched: Watched(mgr.GetCache(), &tidekeeperv1.FreezeList{}),
	}
}

// Watched reports whether any controller of the manager watches the kind of the given list. It can
// be called before and after the cache has started.
func Watched(reader client.Reader, list client.ObjectList) bool {
	notCached := (*cache.ErrResourceNotCached)(nil)
	return !errors.As(reader.List(context.Background(), list, client.Limit(1)), &notCached)
}

// Watched reports whether any controller of the manager watches Freezes.
func (r *Reader) Watched() bool { return r.watched }

// In returns the periods of the cached Freezes that select a namespace and have not ended. Each
// Freeze in force was confirmed on the API server within the last minute, unless the API server is
// unreachable.
func (r *Reader) In(ctx context.Context, namespace string) ([]period.Period, error) {
	list, err := r.cached(ctx)
	if err != nil || len(list.Items) == 0 {
		return nil, err
	}
	return r.in(ctx, r.cache, list.Items, namespace)
}

// LiveIn is like [Reader.In], but lists the Freezes from the API server. The list call began at
// notBefore or later, and at most a second ago.
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

// Anywhere returns the period of the cached Freeze that ends last among the Freezes in force in any
// namespace. It is nil if no Freeze is in force.
func (r *Reader) Anywhere(ctx context.Context) (*period.Period, error) {
	list, err := r.cached(ctx)
	if err != nil {
		return nil, err
	}
	return period.InForce(periodsOf(list.Items), r.clock.Now()), nil
}

// LiveAnywhere is like [Reader.Anywhere], but uses a list that was requested from the API server no
// earlier than LiveAnywhere was called.
func (r *Reader) LiveAnywhere(ctx context.Context) (*period.Period, error) {
	return r.liveAnywhere(ctx, r.clock.Now())
}

// RecentlyAnywhere is like [Reader.Anywhere], but uses a list from the API server that is at most a
// second old ([SharedFor]). A thousand concurrent callers therefore cause a single list call.
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

// in returns the periods of the Freezes that select a namespace and have not ended. It reads the
// Namespace object only if a Freeze selects namespaces by their labels.
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
