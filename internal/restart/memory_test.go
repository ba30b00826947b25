// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/restart/decision"
)

// mapsIn finds all maps in a value, however deep, whose keys are ScheduledRestarts, and returns
// for each type that has some whether one of them has the key of these tests.
func mapsIn(v reflect.Value, owner string, found map[string]bool, seen map[uintptr]bool) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() || seen[v.Pointer()] {
			return
		}
		seen[v.Pointer()] = true
		mapsIn(v.Elem(), owner, found, seen)
	case reflect.Struct:
		if !strings.HasPrefix(v.Type().PkgPath(), "tidekeeper.dev/tidekeeper/internal/") {
			return
		}
		for i := range v.NumField() {
			mapsIn(v.Field(i), v.Type().String(), found, seen)
		}
	case reflect.Map:
		switch v.Type().Key() {
		case reflect.TypeFor[types.NamespacedName]():
			found[owner] = found[owner] || v.MapIndex(reflect.ValueOf(testKey)).IsValid()
		case reflect.TypeFor[reconcile.Request]():
			found[owner] = found[owner] || v.MapIndex(reflect.ValueOf(reconcile.Request{NamespacedName: testKey})).IsValid()
		default:
			for entries := v.MapRange(); entries.Next(); {
				mapsIn(entries.Value(), owner, found, seen)
			}
		}
	default:
	}
}

// Nothing is remembered of a ScheduledRestart that was deleted, wherever something was: a new map
// has to be filled here, and emptied by forget.
func TestForget(t *testing.T) {
	b := newBench(t, nil)
	if err := b.reconcile(t, time.Second); err != nil {
		t.Fatal(err)
	}
	restart := &tidekeeperv1.ScheduledRestart{}
	if err := b.client.Get(t.Context(), testKey, restart); err != nil {
		t.Fatal(err)
	}
	now := b.now.Now()
	b.wakeups.Set(reconcile.Request{NamespacedName: testKey}, now.Add(time.Hour))
	b.gatherer.configs.content(testKey, "c/settings", false, now)
	b.gatherer.evictions.note(testKey, restart, func(*decision.Attempts) {})
	b.refusals.note(testKey, restart.UID, true, now)
	b.refusals.noteSend(testKey, restart, errors.New("a policy says no"))
	b.defaults.refused(testKey, now)
	b.memories.rememberSent(testKey, restart.UID, now)
	b.claims.note(testKey, restart, &tidekeeperv1.ScheduledRestartStatus{})
	b.memories.with(testKey, func(m *memory) {
		m.storm, m.missTurn, m.reportedRequest = &decision.Source{}, now, "yesterday"
		for i, v := 0, reflect.ValueOf(m).Elem(); i < v.NumField(); i++ {
			if v.Field(i).IsZero() {
				t.Errorf("%s of the memory is empty: fill it in this test", v.Type().Field(i).Name)
			}
		}
	})
	look := func() map[string]bool {
		found := map[string]bool{}
		mapsIn(reflect.ValueOf(b.reconciler), "", found, map[uintptr]bool{})
		return found
	}
	before := look()
	for owner, remembers := range before {
		if !remembers {
			t.Errorf("%s remembers nothing of a ScheduledRestart: fill it in this test", owner)
		}
	}
	if len(before) < 4 {
		t.Errorf("only %v were found", before)
	}
	b.forget(testKey)
	for owner, remembers := range look() {
		if remembers {
			t.Errorf("%s remembers a ScheduledRestart that was deleted", owner)
		}
	}
}
