// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package fairness

import (
	"context"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
)

type namespaceKey struct{}

// With returns a context whose API requests are charged to the given namespace.
func With(ctx context.Context, namespace string) context.Context {
	return context.WithValue(ctx, namespaceKey{}, namespace)
}

// Transport charges each API request to the namespace in the request's context, including a
// client's retries. It delays no request; instead, the next reconcile is deferred if the namespace
// has exhausted its API request limit.
func (s *Shares) Transport(next http.RoundTripper) http.RoundTripper { return &transport{next, s} }

type transport struct {
	next   http.RoundTripper
	shares *Shares
}

// RoundTrip implements [http.RoundTripper].
func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	if namespace, ok := request.Context().Value(namespaceKey{}).(string); ok {
		t.shares.charge(namespace)
	}
	return t.next.RoundTrip(request)
}

// WrappedRoundTripper implements [k8s.io/apimachinery/pkg/util/net.RoundTripperWrapper].
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// Recorder returns an event recorder that charges each event to the namespace of the object that
// the event is about. client-go sends events later, without the context of the reconcile, so
// [Shares.Transport] cannot charge them.
func (s *Shares) Recorder(inner events.EventRecorder) events.EventRecorder {
	return &recorder{inner, s}
}

type recorder struct {
	events.EventRecorder
	shares *Shares
}

// Eventf implements [events.EventRecorder].
func (r *recorder) Eventf(regarding, related runtime.Object, eventType, reason, action, note string, args ...any) {
	if ref, ok := regarding.(*corev1.ObjectReference); ok && ref.Namespace != "" {
		r.shares.charge(ref.Namespace)
	}
	r.EventRecorder.Eventf(regarding, related, eventType, reason, action, note, args...)
}
