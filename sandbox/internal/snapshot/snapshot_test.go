// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// TestChanges checks that the changes turn any set of objects into the snapshot, and that no write
// is redundant.
func TestChanges(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	objects := func() map[string][]byte {
		all := map[string][]byte{}
		for range random.IntN(30) {
			kind := []string{"pods/a", "namespaces", "apiextensions.k8s.io/customresourcedefinitions", "zoo/b"}[random.IntN(4)]
			all[fmt.Sprintf("%s%s/%d", prefix, kind, random.IntN(12))] = []byte{byte(random.IntN(3))}
		}
		return all
	}
	for range 2000 {
		s, now := &Snapshot{Objects: objects()}, objects()
		writes, order := 0, 0
		for _, c := range s.changes(now) {
			if reflect.DeepEqual(now[c.Key], c.Value) {
				t.Fatalf("%s is written as it is", c.Key)
			}
			if rank(c) < order {
				t.Fatalf("%s comes too late", c.Key)
			}
			order = rank(c)
			writes++
			if c.Value == nil {
				delete(now, c.Key)
			} else {
				now[c.Key] = c.Value
			}
		}
		if !reflect.DeepEqual(now, s.Objects) {
			t.Fatalf("after %d writes there is %v, want %v", writes, now, s.Objects)
		}
		if again := s.changes(now); len(again) > 0 {
			t.Fatalf("then there is more to do: %v", again)
		}
	}
}

func TestFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	want := &Snapshot{Kubernetes: "v1.36.3", Revision: 7, Taken: time.Unix(1, 0).UTC(), Objects: map[string][]byte{"/registry/a": []byte("b")}}
	if err := want.Save(path); err != nil {
		t.Fatal(err)
	}
	got, err := Load(path)
	if err != nil || !reflect.DeepEqual(want, got) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("other users can read it: %v, %v", info.Mode(), err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"empty": "", "text": "hello", "short": string(whole[:len(whole)-12])} {
		bad := filepath.Join(dir, name)
		if err := os.WriteFile(bad, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(bad); err == nil || !strings.Contains(err.Error(), bad) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := want.Save(filepath.Join(dir, "missing", "a")); err == nil {
		t.Error("it was saved in a directory that is not there")
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 4 {
		t.Errorf("there are leftovers: %v, %v", entries, err)
	}
}

func TestFits(t *testing.T) {
	for _, tc := range []struct {
		theirs, mine string
		fits         bool
	}{
		{"v1.36.3", "v1.36.3", true},
		{"v1.36.9", "v1.36.3", true},
		{"v1.35.0", "v1.36.3", true},
		{"v1.37.0", "v1.36.3", false},
		{"unknown", "v1.36.3", true},
	} {
		if err := (&Snapshot{Kubernetes: tc.theirs}).Fits(tc.mine); (err == nil) != tc.fits {
			t.Errorf("%s in %s: %v", tc.theirs, tc.mine, err)
		}
	}
}

func TestSaveReplaces(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	for i := range 2 {
		if err := (&Snapshot{Objects: map[string][]byte{fmt.Sprint(i): {}}}).Save(path); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Load(path)
	if err != nil || len(got.Objects) != 1 || !maps.EqualFunc(got.Objects, map[string][]byte{"1": {}}, func(a, b []byte) bool { return len(a) == len(b) }) {
		t.Errorf("%v, %v", got, err)
	}
}
