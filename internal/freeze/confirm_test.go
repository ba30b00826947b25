// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package freeze

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// fixed is a reader that always returns the same Freezes and counts the list calls.
type fixed struct {
	client.Reader
	items []tidekeeperv1.Freeze
	lists int
	err   error
}

func (f *fixed) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	f.lists++
	list.(*tidekeeperv1.FreezeList).Items = append([]tidekeeperv1.Freeze(nil), f.items...)
	return f.err
}

// TestConfirmed checks that a Freeze that was deleted but is still cached stays in force for at
// most a minute, and that an existing Freeze is confirmed once a minute.
func TestConfirmed(t *testing.T) {
	named := func(uid types.UID, hours int) tidekeeperv1.Freeze {
		f := *freezeUntil(hours)
		f.Name, f.UID = string(uid), uid
		return f
	}
	c := clocktesting.NewFakePassiveClock(noon)
	cache, server := &fixed{}, &fixed{}
	r := &Reader{cache: cache, apiReader: server, clock: c, watched: true}
	holds := func(what string, lists int, want ...string) {
		t.Helper()
		periods, err := r.In(t.Context(), "shop")
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range periods {
			got = append(got, p.Name)
		}
		if len(got) != len(want) || len(got) > 0 && got[0] != want[0] || server.lists != lists {
			t.Errorf("%s: %q hold after %d lists, want %q after %d", what, got, server.lists, want, lists)
		}
		if last, err := r.Anywhere(t.Context()); err != nil || (last != nil) != (len(want) > 0) {
			t.Errorf("%s: anywhere %v, %v", what, last, err)
		}
	}
	holds("there are none", 0)

	cache.items = []tidekeeperv1.Freeze{named("a", 1)}
	server.items = cache.items
	holds("at first", 1, "a")
	c.SetTime(noon.Add(59 * time.Second))
	holds("before it is confirmed again", 1, "a")
	c.SetTime(noon.Add(61 * time.Second))
	holds("a minute later", 2, "a")

	server.items, server.err = nil, errors.New("not now")
	c.SetTime(noon.Add(3 * time.Minute))
	if periods, err := r.In(t.Context(), "shop"); err != nil || len(periods) != 1 {
		t.Errorf("the API server does not answer: %v, %v, want that the freeze holds", periods, err)
	}
	server.err, server.lists = nil, 0
	c.SetTime(noon.Add(4 * time.Minute))
	holds("it was deleted", 1)
	c.SetTime(noon.Add(9 * time.Minute))
	holds("it is not asked about again", 1)

	// A new Freeze must be in force immediately, even if another Freeze was just deleted.
	cache.items = append(cache.items, named("b", 1))
	server.items = []tidekeeperv1.Freeze{named("b", 1)}
	holds("another one", 2, "b")
	// An expired Freeze causes no request to the API server.
	ended := named("c", 0)
	cache.items, server.items = []tidekeeperv1.Freeze{ended}, nil
	c.SetTime(noon.Add(30 * time.Minute))
	holds("one that has ended", 2)
}

// TestConfirmedByALaterList checks that a list that began before a Freeze was created does not
// confirm that the Freeze is gone, even if the clock has not advanced since.
func TestConfirmedByALaterList(t *testing.T) {
	cache, server := &fixed{}, &fixed{}
	r := &Reader{cache: cache, apiReader: server, clock: clocktesting.NewFakePassiveClock(noon), watched: true}
	if last, err := r.LiveAnywhere(t.Context()); err != nil || last != nil {
		t.Fatalf("there are none: %v, %v", last, err)
	}
	cache.items = []tidekeeperv1.Freeze{*freezeUntil(1)}
	server.items = cache.items
	if last, err := r.Anywhere(t.Context()); err != nil || last == nil {
		t.Errorf("a new Freeze: %v, %v, want that it is in force", last, err)
	}
}
