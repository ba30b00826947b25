// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package fairness

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"pgregory.net/rapid"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

var start = time.Unix(1_800_000_000, 0)

func testShares(l Limits) (*Shares, *clocktesting.FakePassiveClock) {
	c := clocktesting.NewFakePassiveClock(start)
	return New(l, c), c
}

// TestShareIsGivenBack checks that a namespace that has exhausted its API request limit has to wait
// until enough time has passed, and that other namespaces do not wait.
func TestShareIsGivenBack(t *testing.T) {
	s, c := testShares(Limits{PerSecond: 2, Burst: 10})
	for range 20 {
		s.charge("mallory")
	}
	for _, step := range []struct {
		passed time.Duration
		want   time.Duration
	}{{0, 5500 * time.Millisecond}, {5 * time.Second, 500 * time.Millisecond}, {time.Second, 0}, {time.Hour, 0}} {
		c.SetTime(c.Now().Add(step.passed))
		if got := s.wait("mallory").Truncate(time.Millisecond); got != step.want {
			t.Errorf("%s later it waits %s, want %s", step.passed, got, step.want)
		}
	}
	if got := s.wait("alice"); got != 0 {
		t.Errorf("another namespace waits %s", got)
	}
}

// TestShareIsKept checks for random sequences of reconciles that a namespace sends no more API
// requests than its limits allow, apart from the reconcile in progress, and that a deferred
// reconcile may begin after its wait.
func TestShareIsKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := Limits{PerSecond: float64(rapid.IntRange(1, 50).Draw(t, "rate")), Burst: rapid.IntRange(1, 100).Draw(t, "burst")}
		s, c := testShares(l)
		sent, most := 0, 0
		t.Repeat(map[string]func(*rapid.T){
			"reconcile": func(t *rapid.T) {
				if s.wait("a") > 0 {
					return
				}
				requests := rapid.IntRange(0, 30).Draw(t, "requests")
				for range requests {
					s.charge("a")
				}
				sent, most = sent+requests, max(most, requests)
			},
			"pass": func(t *rapid.T) {
				c.SetTime(c.Now().Add(time.Duration(rapid.IntRange(1, 10_000).Draw(t, "ms")) * time.Millisecond))
			},
			"wait": func(t *rapid.T) {
				c.SetTime(c.Now().Add(s.wait("a")))
				if left := s.wait("a"); left > 0 {
					t.Fatalf("after that it has to wait for %s", left)
				}
			},
			"": func(t *rapid.T) {
				if allowed := float64(l.Burst+most) + l.PerSecond*c.Since(start).Seconds(); float64(sent) > allowed+1 {
					t.Fatalf("%d requests were sent in %s, want at most %.1f", sent, c.Since(start), allowed)
				}
			},
		})
	})
}

// TestAccountsAreClosed checks that only the accounts of idle namespaces are dropped.
func TestAccountsAreClosed(t *testing.T) {
	s, c := testShares(Limits{PerSecond: 1, Burst: 100})
	for range 100_000 {
		s.charge("mallory")
	}
	for i := range 20 * minSweep {
		c.SetTime(c.Now().Add(10 * time.Second))
		s.charge(fmt.Sprint("tenant-", i))
	}
	if n := len(s.accounts); n > 2*minSweep {
		t.Errorf("%d accounts are kept", n)
	}
	if s.wait("mallory") == 0 {
		t.Error("the account of a namespace that has to wait was closed")
	}
}

func TestWindow(t *testing.T) {
	var w window
	for _, step := range []struct{ minute, add, want float64 }{{0, 1, 1}, {0.5, 1, 2}, {1, 1, 3}, {4.9, 1, 4}, {5, 0, 2}, {6, 0, 1}, {5.5, 1, 2}, {1000, 1, 1}, {10, 1, 1}, {11, 1, 2}} {
		now := start.Truncate(time.Hour).Add(time.Duration(step.minute * float64(time.Minute)))
		w.at(now).Requests += step.add
		if got := w.sum(now).Requests; got != step.want {
			t.Errorf("in minute %g: %g, want %g", step.minute, got, step.want)
		}
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestWhoIsCharged checks that API requests are charged to the namespace of the reconcile that
// sends them, that events are charged to the namespace of their object, and that the manager's
// other requests are charged to no namespace.
func TestWhoIsCharged(t *testing.T) {
	s, _ := testShares(Limits{PerSecond: 1, Burst: 1})
	sent := 0
	transport := s.Transport(roundTrip(func(*http.Request) (*http.Response, error) { sent++; return nil, http.ErrHandlerTimeout }))
	for _, ctx := range []context.Context{With(t.Context(), "a"), context.WithoutCancel(With(t.Context(), "a")), With(t.Context(), "b"), t.Context()} {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://server/api/v1/namespaces/c/pods", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := transport.RoundTrip(request); err == nil { //nolint:bodyclose // The transport returns an error instead of a response.
			t.Error("the error of the request is lost")
		}
	}
	recorded := events.NewFakeRecorder(10)
	recorder := s.Recorder(recorded)
	for _, ref := range []*corev1.ObjectReference{{Kind: "ScheduledRestart", Namespace: "b", Name: "web"}, {Kind: "NodePool", Name: "gpu"}} {
		recorder.Eventf(ref, nil, "Normal", "Restarted", "Restart", "%s", "done")
	}
	got := map[string]float64{}
	for namespace, u := range s.used() {
		got[namespace] = u.Requests
	}
	if diff := cmp.Diff(map[string]float64{"a": 2, "b": 2}, got); diff != "" || sent != 4 || len(recorded.Events) != 2 {
		t.Errorf("%d requests and %d events were sent, charged to (-want +got):\n%s", sent, len(recorded.Events), diff)
	}
}

// TestReconciler checks that a reconcile is deferred and Deferred is called if the namespace has
// exhausted its API request limit, and that reconciles of other namespaces still run.
func TestReconciler(t *testing.T) {
	s, c := testShares(Limits{PerSecond: 1, Burst: 10})
	var ran, deferred []string
	r := &Reconciler[string]{
		shares: s, cache: fake.NewClientBuilder().Build(),
		inner: reconcile.TypedFunc[string](func(ctx context.Context, request string) (ctrl.Result, error) {
			ran = append(ran, request)
			for range 20 {
				_, _ = s.Transport(roundTrip(func(*http.Request) (*http.Response, error) { return nil, http.ErrHandlerTimeout })).
					RoundTrip((&http.Request{}).WithContext(ctx)) //nolint:bodyclose // The transport returns an error instead of a response.
			}
			c.SetTime(c.Now().Add(2 * time.Second))
			return ctrl.Result{}, nil
		}),
		of: Controller[string]{
			NamespaceOf: of, ObjectOf: func(string) client.Object { return &corev1.ConfigMap{} },
			Deferred: func(_ context.Context, request string) { deferred = append(deferred, request) },
		},
	}
	for _, step := range []struct {
		request string
		after   time.Duration
	}{{"a/1", 0}, {"a/2", 9 * time.Second}, {"b/1", 0}, {"a/2", 7 * time.Second}} {
		result, err := r.Reconcile(t.Context(), step.request)
		if after := result.RequeueAfter.Truncate(time.Millisecond); after != step.after || err != nil {
			t.Errorf("%s: again after %s, %v; want %s", step.request, after, err, step.after)
		}
	}
	c.SetTime(c.Now().Add(7*time.Second + time.Millisecond))
	if result, err := r.Reconcile(t.Context(), "a/2"); err != nil || result.RequeueAfter != 0 {
		t.Errorf("it is put off when it need not be: %+v, %v", result, err)
	}
	if diff := cmp.Diff([][]string{{"a/1", "b/1", "a/2"}, {"a/2", "a/2"}}, [][]string{ran, deferred}); diff != "" {
		t.Errorf("run, and put off (-want +got):\n%s", diff)
	}
	if got, want := s.used()["a"], (Use{Requests: 40, WorkerSeconds: 4, Deferred: 2}); got != want {
		t.Errorf("used: %+v, want %+v", got, want)
	}
}

// TestMetrics checks that each metric has a series only for the Rows namespaces with the highest
// use, and one series for the sum of the other namespaces.
func TestMetrics(t *testing.T) {
	s, _ := testShares(Limits{PerSecond: 1, Burst: 1000})
	for i := range Rows + 5 {
		for range i + 1 {
			s.charge(fmt.Sprintf("tenant-%02d", i))
		}
	}
	s.work("tenant-00", 90*time.Second)
	s.wait("tenant-00")
	s.on("tenant-00", func(a *account, now time.Time) { a.recent.at(now).Deferred += 3 })
	want := `# HELP tidekeeper_namespace_deferred_reconciles Reconciles that were deferred because a namespace had used up its requests to the API server, for the objects of a namespace in the last 5 minutes, by namespace: for each of the 20 namespaces with the highest values, and the sum of all others under the empty namespace.
# TYPE tidekeeper_namespace_deferred_reconciles gauge
tidekeeper_namespace_deferred_reconciles{namespace=""} 0
tidekeeper_namespace_deferred_reconciles{namespace="tenant-00"} 3
# HELP tidekeeper_namespace_worker_seconds Seconds of work by workers for the objects of a namespace in the last 5 minutes, by namespace: for each of the 20 namespaces with the highest values, and the sum of all others under the empty namespace.
# TYPE tidekeeper_namespace_worker_seconds gauge
tidekeeper_namespace_worker_seconds{namespace=""} 0
tidekeeper_namespace_worker_seconds{namespace="tenant-00"} 90
`
	if err := testutil.CollectAndCompare(s, strings.NewReader(want), "tidekeeper_namespace_deferred_reconciles", "tidekeeper_namespace_worker_seconds"); err != nil {
		t.Error(err)
	}
	if n := testutil.CollectAndCount(s, "tidekeeper_namespace_requests"); n != Rows+1 {
		t.Errorf("%d series for %d namespaces, want %d", n, Rows+5, Rows+1)
	}
	if err := testutil.CollectAndCompare(s, strings.NewReader(""), "tidekeeper_namespace_requests"); err == nil || !strings.Contains(err.Error(), `tidekeeper_namespace_requests{namespace=""} 15`) {
		t.Errorf("the others are not added up: %v", err)
	}
}
