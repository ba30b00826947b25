// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package reconnect

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
)

// phase is a period in which the API server gives the same response to every request.
type phase struct {
	err  error
	span time.Duration
}

// TestConnection checks that a connection stops after half a minute of uninterrupted rejections,
// and that the time of an outage before the rejections does not count.
func TestConnection(t *testing.T) {
	down := &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	forbidden := apierrors.NewForbidden(corev1.Resource("pods"), "", errors.New("no"))
	unauthorized := apierrors.NewUnauthorized("no")
	unknown := apierrors.NewNotFound(corev1.Resource("pods"), "")
	expired := apierrors.NewResourceExpired("too old")
	up := phase{nil, time.Second}
	for _, tt := range []struct {
		name   string
		phases []phase
		want   []string
		err    error
	}{
		{"all is well", []phase{up}, nil, nil},
		{"refused from the start", []phase{{forbidden, time.Hour}}, []string{"stop: " + forbidden.Error()}, forbidden},
		{"not reached at first", []phase{{down, time.Minute}, up}, nil, nil},
		{"refused for a while", []phase{up, {forbidden, 20 * time.Second}, up}, []string{"lost: " + forbidden.Error(), "regained"}, nil},
		{"unknown for a while", []phase{up, {unauthorized, 10 * time.Second}, {unknown, 10 * time.Second}, up}, []string{"lost: " + unauthorized.Error(), "regained"}, nil},
		{"refused for minutes", []phase{up, {unknown, time.Hour}}, []string{"lost: " + unknown.Error(), "stop: " + unknown.Error()}, unknown},
		{"away for an hour, and then refused for a while", []phase{up, {down, time.Hour}, {forbidden, 20 * time.Second}, up}, []string{"lost: " + down.Error(), "regained"}, nil},
		{"the informer's own", []phase{up, {expired, time.Hour}}, nil, expired},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var told []string
				var until []time.Time
				at := time.Now()
				for _, p := range tt.phases {
					at = at.Add(p.span)
					until = append(until, at)
				}
				now := func() error {
					for i, p := range tt.phases {
						if time.Now().Before(until[i]) {
							return p.err
						}
					}
					return nil
				}
				c := &Connection{
					Source: &cache.ListWatch{ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
						return &corev1.PodList{}, now()
					}},
					OnLost:     func(err error) { told = append(told, "lost: "+err.Error()) },
					OnRegained: func() { told = append(told, "regained") },
					Stop:       func(err error) { told = append(told, "stop: "+err.Error()) },
				}
				var err error
				for time.Now().Before(at) && err == nil {
					_, err = c.ListerWatcher().ListWithContextFunc(t.Context(), metav1.ListOptions{})
					time.Sleep(time.Second) // sleep: in a synctest bubble
				}
				if !errors.Is(err, tt.err) {
					t.Errorf("it ends with %v, want %v", err, tt.err)
				}
				if diff := cmp.Diff(tt.want, told); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestConnectionEndsWithItsContext checks that a request returns when its context is cancelled,
// without waiting for the next attempt.
func TestConnectionEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		c := &Connection{Source: &cache.ListWatch{ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			return nil, apierrors.NewServiceUnavailable("starting")
		}}}
		began := time.Now()
		if _, err := c.ListerWatcher().ListWithContextFunc(ctx, metav1.ListOptions{}); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 200*time.Millisecond {
			t.Errorf("it ends with %v after %s", err, time.Since(began))
		}
	})
}

func TestUnreachable(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want bool
	}{
		{&net.OpError{Op: "dial", Err: errors.New("refused")}, true},
		{apierrors.NewServiceUnavailable("starting"), true},
		{apierrors.NewTooManyRequestsError("busy"), true},
		{apierrors.NewResourceExpired("too old"), false},
		{apierrors.NewBadRequest("no"), false},
		{&apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonTimeout, Details: &metav1.StatusDetails{
			Causes: []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}},
		}}}, false},
	} {
		if got := unreachable(tc.err); got != tc.want {
			t.Errorf("%v: %t, want %t", tc.err, got, tc.want)
		}
	}
}

// TestConnectionNoticesTheEndOfAnOutage checks that even after a long outage the recovery of the
// API server is noticed within the longest pause and its jitter.
func TestConnectionNoticesTheEndOfAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		back := time.Now().Add(time.Hour)
		c := &Connection{Source: &cache.ListWatch{ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			if time.Now().Before(back) {
				return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
			}
			return &corev1.PodList{}, nil
		}}}
		if _, err := c.ListerWatcher().ListWithContextFunc(t.Context(), metav1.ListOptions{}); err != nil {
			t.Fatal(err)
		}
		if late := time.Since(back); late > 2400*time.Millisecond {
			t.Errorf("the API server is noticed %s after it is back", late)
		}
	})
}
