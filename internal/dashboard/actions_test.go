// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// fakeActions records the performed actions.
type fakeActions struct {
	allowed bool
	mu      sync.Mutex
	asked   []Right
	done    []string
}

func (f *fakeActions) Allowed(_ context.Context, right Right) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, right)
	return f.allowed, nil
}

func (f *fakeActions) Freeze(_ context.Context, namespaces []string, until, reason string) (string, error) {
	f.done = append(f.done, fmt.Sprint("freeze ", namespaces, " until ", until, ": ", reason))
	return "created", nil
}

func (f *fakeActions) Thaw(_ context.Context, name string, uid types.UID) (string, error) {
	f.done = append(f.done, fmt.Sprint("thaw ", name, " ", uid))
	return "lifted", nil
}

func (f *fakeActions) RestartNow(_ context.Context, namespace, name string) (string, error) {
	f.done = append(f.done, "now "+namespace+"/"+name)
	return "requested", nil
}
func (f *fakeActions) Suspend(_ context.Context, namespace, name string) (string, error) {
	f.done = append(f.done, "suspend "+namespace+"/"+name)
	return "suspended", nil
}
func (f *fakeActions) Resume(_ context.Context, namespace, name string) (string, error) {
	f.done = append(f.done, "resume "+namespace+"/"+name)
	return "resumed", nil
}

func TestActions(t *testing.T) {
	const (
		now    = `{"action":"now","namespace":"shop","name":"web"}`
		freeze = `{"action":"freeze","namespaces":" shop, blog","until":" 4h","reason":"migration "}`
		thaw   = `{"action":"thaw","name":"christmas","uid":"1-2"}`
		json   = "application/json"
	)
	patch := Right{"patch", "scheduledrestarts", "shop", "web"}
	create, remove := Right{Verb: "create", Resource: "freezes"}, Right{Verb: "delete", Resource: "freezes", Name: "christmas"}
	for _, tc := range []struct {
		name    string
		actions *fakeActions
		method  string
		kind    string
		body    string
		code    int
		asked   []Right
		done    []string
	}{
		{"read-only", nil, "POST", json, now, http.StatusForbidden, nil, nil},
		{"allowed", &fakeActions{allowed: true}, "POST", json, now, http.StatusOK, []Right{patch}, []string{"now shop/web"}},
		{"with a charset", &fakeActions{allowed: true}, "POST", json + "; charset=utf-8", now, http.StatusOK, []Right{patch}, []string{"now shop/web"}},
		{"suspend", &fakeActions{allowed: true}, "POST", json, strings.Replace(now, "now", "suspend", 1), http.StatusOK, []Right{patch}, []string{"suspend shop/web"}},
		{"freeze", &fakeActions{allowed: true}, "POST", json, freeze, http.StatusOK, []Right{create}, []string{"freeze [shop blog] until 4h: migration"}},
		{"freeze everywhere", &fakeActions{allowed: true}, "POST", json, `{"action":"freeze","namespaces":"","until":"4h","reason":"x"}`, http.StatusOK, []Right{create}, []string{"freeze [] until 4h: x"}},
		{"thaw", &fakeActions{allowed: true}, "POST", json, thaw, http.StatusOK, []Right{remove}, []string{"thaw christmas 1-2"}},
		{"no right", &fakeActions{}, "POST", json, now, http.StatusForbidden, []Right{patch}, nil},
		{"no right to freeze", &fakeActions{}, "POST", json, freeze, http.StatusForbidden, []Right{create}, nil},
		{"no right to thaw", &fakeActions{}, "POST", json, thaw, http.StatusForbidden, []Right{remove}, nil},
		{"a form", &fakeActions{allowed: true}, "POST", "text/plain", now, http.StatusUnsupportedMediaType, nil, nil},
		{"no type", &fakeActions{allowed: true}, "POST", "", now, http.StatusUnsupportedMediaType, nil, nil},
		{"another action", &fakeActions{allowed: true}, "POST", json, strings.Replace(now, "now", "delete", 1), http.StatusBadRequest, nil, nil},
		{"no name", &fakeActions{allowed: true}, "POST", json, `{"action":"now","namespace":"shop"}`, http.StatusBadRequest, nil, nil},
		{"whichever has the name", &fakeActions{allowed: true}, "POST", json, `{"action":"thaw","name":"christmas"}`, http.StatusBadRequest, nil, nil},
		{"no JSON", &fakeActions{allowed: true}, "POST", json, `action=now`, http.StatusBadRequest, nil, nil},
		{"more fields", &fakeActions{allowed: true}, "POST", json, `{"action":"now","namespace":"shop","name":"web","force":true}`, http.StatusBadRequest, nil, nil},
		{"too large", &fakeActions{allowed: true}, "POST", json, `{"action":"` + strings.Repeat("x", maxBody) + `"}`, http.StatusBadRequest, nil, nil},
		{"GET changes nothing", &fakeActions{allowed: true}, "GET", json, now, http.StatusNotFound, nil, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			headers := merge(bearer(testToken), "Content-Type", tc.kind)
			var actions Actions
			got := &fakeActions{}
			if tc.actions != nil {
				actions, got = tc.actions, tc.actions
			}
			w := send(newTestSite(t, actions), tc.method, "/-/act", ourHost, headers, tc.body)
			if w.Code != tc.code {
				t.Errorf("%d %s, want %d", w.Code, w.Body, tc.code)
			}
			if diff := cmp.Diff(tc.asked, got.asked) + cmp.Diff(tc.done, got.done); diff != "" {
				t.Errorf("rights asked for, and what was done (-want +got):\n%s", diff)
			}
		})
	}
}

// TestButtonsNeedTheRight checks that a page has no buttons without --allow-actions or without the
// required permission. Access reviews are cached between views of a page.
func TestButtonsNeedTheRight(t *testing.T) {
	restart := &tidekeeperv1.ScheduledRestart{}
	restart.Namespace, restart.Name = "shop", "web"
	f := &view.Freeze{Name: "christmas", Where: "all namespaces", Reason: "holidays", UID: "1-2"}
	for _, tc := range []struct {
		actions *fakeActions
		want    []string
	}{
		{nil, nil},
		{&fakeActions{}, nil},
		{&fakeActions{allowed: true}, []string{
			`now {"action":"now","namespace":"shop","name":"web"}`, `suspend {"action":"suspend","namespace":"shop","name":"web"}`,
			`freeze {"action":"freeze"}`, `thaw {"action":"thaw","name":"christmas","uid":"1-2"}`,
		}},
	} {
		var actions Actions
		if tc.actions != nil {
			actions = tc.actions
		}
		site := newTestSite(t, actions)
		for range 3 {
			r := requestOf(t, site, &snapshot{now: noon})
			b := r.buttons()
			if got := slices.Concat(b.restart(restart), b.freeze(), b.thaw(f)); r.asks.await() && len(got) > 0 {
				t.Errorf("there are buttons before the API server has said that they are allowed: %+v", got)
			}
			var got []string
			for _, a := range append(append(b.restart(restart), b.freeze()...), b.thaw(f)...) {
				got = append(got, a.Name+" "+a.Object)
				asks := a.Ask + " " + a.Question
				if !strings.HasSuffix(a.Ask, "?") || !strings.Contains(asks, "context test") || a.Name != actFreeze && !strings.Contains(asks, restart.Name) && !strings.Contains(asks, f.Name) {
					t.Errorf("the question does not name object and context: %s", asks)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%+v (-want +got):\n%s", tc.actions, diff)
			}
		}
		if tc.actions != nil && len(tc.actions.asked) != 3 {
			t.Errorf("%d access reviews for 3 rights", len(tc.actions.asked))
		}
	}
}

// TestNoFreezeWithoutItsKind checks that the button that creates a Freeze is missing if the cluster
// does not serve Freezes.
func TestNoFreezeWithoutItsKind(t *testing.T) {
	site := newTestSite(t, &fakeActions{allowed: true})
	r := requestOf(t, site, &snapshot{now: noon, unserved: map[string]bool{kindFreezes: true}})
	b := r.buttons()
	b.freeze()
	r.asks.await()
	if got := b.freeze(); len(got) > 0 {
		t.Errorf("there is a button: %+v", got)
	}
}

// TestFreezeRows checks that the page lists the Freezes that have not ended, with the number of
// restarts and nodes that each holds back.
func TestFreezeRows(t *testing.T) {
	f := &tidekeeperv1.Freeze{ObjectMeta: metav1.ObjectMeta{Name: "christmas", CreationTimestamp: metav1.Time{Time: noon.Add(-time.Hour)}}}
	f.Spec = tidekeeperv1.FreezeSpec{Until: metav1.Time{Time: noon.Add(time.Hour)}, Reason: "holidays"}
	f.Status.HeldBack = tidekeeperv1.HeldBack{Restarts: 1, MissedTicks: 2}
	site := newTestSite(t, nil)
	r := requestOf(t, site, &snapshot{now: noon, objects: map[string][]metav1.Object{kindFreezes: {f}}})
	rows := freezeRows(r.snapshot, time.UTC, r.buttons())
	if len(rows) != 1 || rows[0].State != "in force" || rows[0].HeldBackNow != "1 restart waiting, 2 ticks missed" || len(rows[0].Actions) > 0 {
		t.Errorf("%+v", rows)
	}
}
