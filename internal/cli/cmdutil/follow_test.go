// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdutil

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/term"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// aPool returns a NodePool that was created an hour before noon, with the given reason of its
// condition Ready.
func aPool(name, reason string) tidekeeperv1.NodePool {
	return tidekeeperv1.NodePool{
		ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(noon.Add(-time.Hour))},
		Status:     tidekeeperv1.NodePoolStatus{Conditions: []metav1.Condition{{Type: "Ready", Status: "True", Reason: reason}}},
	}
}

// stubClient responds to lists and watches with prepared responses, one after the other. After the
// last response, it cancels the test's context.
type stubClient struct {
	client.WithWatch
	end     func()
	lists   chan []tidekeeperv1.NodePool
	watches chan *watch.FakeWatcher
	from    chan string
}

func (c *stubClient) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	select {
	case items := <-c.lists:
		list.(*tidekeeperv1.NodePoolList).Items = items
		list.SetResourceVersion("20")
		return nil
	default:
		c.end()
		return apierrors.NewForbidden(schema.GroupResource{Group: "tidekeeper.dev", Resource: "nodepools"}, "", io.ErrClosedPipe)
	}
}

func (c *stubClient) Watch(ctx context.Context, _ client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
	o := (&client.ListOptions{}).ApplyOptions(options)
	select {
	case w := <-c.watches:
		c.from <- o.Raw.ResourceVersion
		return w, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// TestFollow checks that changes made while no watch was open are printed once a watch is open
// again. Follow resumes a watch that merely ended, and lists the objects again after a gap.
func TestFollow(t *testing.T) { synctest.Test(t, testFollow) }

func testFollow(t *testing.T) {
	version := func(p tidekeeperv1.NodePool, version string) *tidekeeperv1.NodePool {
		p.ResourceVersion = version
		return &p
	}
	a, b, c := aPool("a", "Healthy"), aPool("b", "Healthy"), aPool("c", "Healthy")
	worse := aPool("a", "NodesNotReady")
	list := &tidekeeperv1.NodePoolList{ListMeta: metav1.ListMeta{ResourceVersion: "10"}, Items: []tidekeeperv1.NodePool{*version(a, "1"), *version(b, "2"), *version(c, "3")}}
	first, second, third := watch.NewFake(), watch.NewFake(), watch.NewFake()
	stub := &stubClient{lists: make(chan []tidekeeperv1.NodePool, 1), watches: make(chan *watch.FakeWatcher, 3), from: make(chan string, 3)}
	stub.lists <- []tidekeeperv1.NodePool{*version(worse, "18")}
	for _, w := range []*watch.FakeWatcher{first, second, third} {
		stub.watches <- w
	}
	var out, errOut strings.Builder
	f := &Follower{
		Console: Console{Out: &out, ErrOut: &errOut}, Now: func() time.Time { return noon.Add(time.Hour) },
		Kind: "NodePool", List: list, Empty: func() client.ObjectList { return &tidekeeperv1.NodePoolList{} },
		Table: func(o client.Object, now time.Time) *term.Table {
			pool := o.(*tidekeeperv1.NodePool)
			return &term.Table{Columns: make([]term.Column, 3), Rows: [][]term.Cell{{
				term.Text(pool.Name), term.Text(pool.Status.Conditions[0].Reason), term.Text(term.Ago(pool.CreationTimestamp.Time, now)),
			}}}
		},
	}
	f.Layout = f.Table(&a, noon).Layout(f.Console.Screen, nil)
	go func() {
		first.Modify(version(a, "11")) // no displayed field changes
		first.Delete(version(b, "12"))
		first.Stop() // API servers close watches after a few minutes.
		gone := apierrors.NewResourceExpired("too old").Status()
		second.Error(&gone)
		second.Stop()
		third.Error(&metav1.Status{Code: http.StatusGone, Reason: metav1.StatusReasonExpired})
		third.Stop()
	}()
	ctx, cancel := context.WithCancel(t.Context())
	stub.end = cancel
	if err := f.run(ctx, stub); !errors.Is(err, context.Canceled) {
		t.Errorf("it ends with %v", err)
	}
	want := []string{"b was deleted", "a NodesNotReady 120m", "c was deleted"}
	var got []string
	for line := range strings.Lines(out.String()) {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	// Changes found by the second list are printed in any order.
	if len(got) == 3 && got[1] == want[2] {
		got[1], got[2] = got[2], got[1]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s%s", diff, errOut.String())
	}
	for _, want := range []string{"10", "12", "20"} {
		if got := <-stub.from; got != want {
			t.Errorf("watched from resource version %s, want %s", got, want)
		}
	}
}
