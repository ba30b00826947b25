// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/restart/decision"
	"tidekeeper.dev/tidekeeper/internal/workload/podconfig"
)

// mapsIn searches a value recursively for maps that are keyed by ScheduledRestart. For each type
// that contains such a map, it stores in found whether the map contains testKey.
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

// TestForget checks that forget drops all state of a deleted ScheduledRestart. It fails if a new
// map or field is not filled by this test and dropped by forget.
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
	b.gatherer.configs.content(testKey, "c/settings", false, knownContent{}, now)
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

// TestLocksAreOfTheirOwners checks that each lock is taken only by methods of the type that
// contains it.
func TestLocksAreOfTheirOwners(t *testing.T) {
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	locks := 0
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, declaration := range file.Decls {
			ast.Inspect(declaration, func(n ast.Node) bool {
				mu, ok := n.(*ast.SelectorExpr)
				if !ok || mu.Sel.Name != "mu" {
					return true
				}
				locks++
				method, _ := declaration.(*ast.FuncDecl)
				owner, _ := mu.X.(*ast.Ident)
				if method == nil || method.Recv == nil || owner == nil || method.Recv.List[0].Names[0].Name != owner.Name {
					t.Errorf("%s takes a lock that is not its own", name)
				}
				return true
			})
		}
	}
	if locks == 0 {
		t.Error("no lock was found")
	}
}

// TestRememberTogether checks that types with their own locks can concurrently store and drop state
// of the same ScheduledRestarts without a deadlock, and that no state is left over.
func TestRememberTogether(t *testing.T) {
	m := newMemories()
	held, used := newClaims(100, m), newConfigs(m, 0, func([]types.NamespacedName) {})
	now := time.Unix(1, 0)
	records := []*podconfig.Record{configRecord(t, "shop", "one", "1", now), configRecord(t, "shop", "one", "2", now.Add(time.Second))}
	var all sync.WaitGroup
	for i := range 8 {
		key := types.NamespacedName{Namespace: "shop", Name: fmt.Sprint("web-", i%4)}
		restart := &tidekeeperv1.ScheduledRestart{Status: tidekeeperv1.ScheduledRestartStatus{Active: &tidekeeperv1.ActiveRestart{}}}
		all.Go(func() {
			for n := range 200 {
				held.note(key, restart, &restart.Status)
				used.content(key, fmt.Sprint("c/one c/other-", n%3), false, knownContent{}, now)
				used.set(records[n%2])
				held.listSince("shop", now, now)
				switch n % 3 {
				case 0:
					held.forget(key)
				case 1:
					used.forget(key)
				default:
					m.forget(key)
				}
			}
			m.forget(key)
		})
	}
	all.Wait()
	if len(m.all) != 0 || len(held.namespaces) != 0 || len(used.users) != 0 {
		t.Errorf("left are the memories %v, the claims %v and the users %v", m.all, held.namespaces, used.users)
	}
}
