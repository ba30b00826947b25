// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package neighbors

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// watchNodes watches the nodes with the given labels. The returned function stops the watch and
// returns each node's versions, reduced to the settings of the test's pools; consecutive equal
// versions are merged.
func watchNodes(t *testing.T, labels client.MatchingLabels) func() map[string][]string {
	t.Helper()
	watching, err := client.NewWithWatch(cluster.Config, client.Options{Scheme: cluster.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	events, err := watching.Watch(t.Context(), &corev1.NodeList{}, labels)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(events.Stop)
	var lock sync.Mutex
	versions := map[string][]string{}
	go func() {
		for event := range events.ResultChan() {
			node, ok := event.Object.(*corev1.Node)
			if !ok {
				continue
			}
			version := "round " + node.Labels[besideRound]
			for _, taint := range node.Spec.Taints {
				version += ", " + taint.ToString()
			}
			lock.Lock()
			if had := versions[node.Name]; len(had) == 0 || had[len(had)-1] != version {
				versions[node.Name] = append(had, version)
			}
			lock.Unlock()
		}
	}()
	return func() map[string][]string {
		lock.Lock()
		defer lock.Unlock()
		return maps.Clone(versions)
	}
}

// endsWith returns nil if each node's last version has the settings from the pools' specs in the
// given round.
func endsWith(versions map[string][]string, round int) error {
	for i := range 2 * besidePools {
		name := fmt.Sprint("beside-", i+1)
		had := versions[name]
		if want := besideVersion(i, round); len(had) == 0 || had[len(had)-1] != want {
			return fmt.Errorf("%s was %q, want %q at last", name, had, want)
		}
	}
	return nil
}

// besideVersion returns the version of a node that the pools' specs in the given round result in.
func besideVersion(node, round int) string {
	version := fmt.Sprint("round ", round)
	if round > 0 && round%besidePools == node/2 {
		version += ", " + besideTaint
	}
	return version
}

// besideUsers lists the users of the manager, the descheduler and cert-manager, whose requests are
// compared.
var besideUsers = []string{framework.ManagerUser, deschedulerUser, certManagerUser}

func succeeded(r framework.Request) bool { return r.Code < 300 }

func object(r framework.Request) string {
	return fmt.Sprint(r.Resource, ".", r.Group, " ", r.Namespace, "/", r.Name)
}

// assertNodes asserts that each node had the pools' settings of each round in order, and that each
// of the manager's writes to a node changed these settings.
func assertNodes(t *testing.T, versions map[string][]string, log []framework.Request, rounds int) {
	t.Helper()
	writes := map[string]int{}
	for _, r := range log {
		if r.User == framework.ManagerUser && r.Resource == "nodes" && r.Writes() && succeeded(r) {
			writes[r.Name]++
		}
	}
	for i := range 2 * besidePools {
		name := fmt.Sprint("beside-", i+1)
		var want []string
		got := slices.Clone(versions[name])
		for round := range rounds + 1 {
			version := besideVersion(i, round)
			// The manager records a new key in the pool's status before it writes the key to a
			// node. The label does not wait for that.
			if labelled := fmt.Sprint("round ", round); version != labelled {
				if at := slices.Index(got, version); at > 0 && got[at-1] == labelled {
					got = slices.Delete(got, at-1, at)
				}
			}
			want = append(want, version)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s was\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if writes[name] != len(versions[name]) {
			t.Errorf("the manager wrote %s %d times, and it had %d versions:\n%s", name, writes[name], len(versions[name]), strings.Join(versions[name], "\n"))
		}
	}
}

// assertNoFight asserts that no object was written by two of the three programs, and that none of
// their requests was denied for a missing right.
func assertNoFight(t *testing.T, log []framework.Request) {
	t.Helper()
	writers, count := map[string]string{}, map[string]int{}
	for _, r := range log {
		if !slices.Contains(besideUsers, r.User) {
			continue
		}
		// To find out whether the API server has priority and fairness, clients request a path that
		// no role grants.
		if r.Denied && r.Resource != "" {
			t.Errorf("%s may not %s", r.User, r)
		}
		if !r.Writes() || !succeeded(r) || r.Resource == "events" || r.Resource == "leases" || r.Name == "" {
			continue
		}
		count[r.User]++
		if other, written := writers[object(r)]; written && other != r.User {
			t.Errorf("%s and %s have both written %s", other, r.User, object(r))
		}
		writers[object(r)] = r.User
	}
	for _, user := range besideUsers {
		t.Logf("%s has made %d writes", user, count[user])
		if count[user] == 0 {
			t.Errorf("%s has written nothing", user)
		}
	}
}

// assertRetried asserts that each of the manager's failed writes, for instance because of a
// conflict or a busy API server, was followed by a successful write to the same object.
func assertRetried(t *testing.T, log []framework.Request) {
	t.Helper()
	open, refused := map[string]framework.Request{}, 0
	for _, r := range log {
		switch {
		case r.User != framework.ManagerUser || !r.Writes() || r.Resource == "events":
		case succeeded(r):
			delete(open, object(r))
		case r.Code == 409 || r.Code == 422 || r.Code == 429 || r.Code >= 500: // A conflict, or the API server was busy.
			refused++
			open[object(r)] = r
		default:
			t.Errorf("the manager's %s", r)
		}
	}
	t.Logf("%d writes of the manager came too late", refused)
	for _, r := range open {
		t.Errorf("the manager's %s was not tried again", r)
	}
}

// assertEvicted returns the number of pods that the descheduler has evicted. The descheduler may
// evict a terminating pod again, because it does not see the deletion immediately.
func assertEvicted(t *testing.T, log []framework.Request) int {
	t.Helper()
	evicted, refused := map[string]bool{}, 0
	for _, r := range log {
		if r.User != deschedulerUser || r.Resource != "pods" || r.Subresource != "eviction" {
			continue
		}
		switch {
		case !succeeded(r):
			refused++
		default:
			evicted[r.Name] = true
		}
	}
	t.Logf("the descheduler has evicted %d pods, and was refused %d times", len(evicted), refused)
	return len(evicted)
}
