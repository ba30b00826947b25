// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	listersv1 "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"tidekeeper.dev/tidekeeper/sandbox/client"
)

// inform runs an informer for a namespace's ConfigMaps until the end of the test.
func inform(t *testing.T, client kubernetes.Interface, namespace string) (cache.SharedIndexInformer, listersv1.ConfigMapNamespaceLister) {
	t.Helper()
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace))
	maps := factory.Core().V1().ConfigMaps()
	informer := maps.Informer()
	factory.Start(t.Context().Done())
	t.Cleanup(factory.Shutdown)
	return informer, maps.Lister().ConfigMaps(namespace)
}

func awaitSynced(t *testing.T, informer cache.SharedIndexInformer) {
	t.Helper()
	waitFor(t, 20*time.Second, func() string {
		if !informer.HasSynced() {
			return "the informer has not synced"
		}
		return ""
	})
}

// knows returns the version of a ConfigMap in an informer's cache, or "" if the cache does not
// contain it.
func knows(t *testing.T, lister listersv1.ConfigMapNamespaceLister, name string) string {
	t.Helper()
	got, err := lister.Get(name)
	if apierrors.IsNotFound(err) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	return got.Data[version]
}

func awaitKnows(t *testing.T, lister listersv1.ConfigMapNamespaceLister, name, want string) {
	t.Helper()
	waitFor(t, 20*time.Second, func() string {
		if got := knows(t, lister, name); got != want {
			return fmt.Sprintf("the informer knows %s as %q, want %q", name, got, want)
		}
		return ""
	})
}

// TestProxyInformer checks that watch faults have the expected effect on a client's cache, in both
// encodings.
func TestProxyInformer(t *testing.T) {
	t.Parallel()
	s := sharedSandbox(t)
	p := startProxy(t, s, "")
	for _, protobuf := range []bool{false, true} {
		namespace, direct := inNamespace(t, s)
		create(t, direct, "a")
		informer, lister := inform(t, p.client(t, protobuf), namespace)
		awaitSynced(t, informer)
		match := fmt.Sprintf("match: {resources: [configmaps], namespaces: [%s]}", namespace)

		// While its watch is frozen, the client still sees the old state.
		p.call(t, http.MethodPost, "/freeze", match)
		update(t, direct, "a", "2")
		create(t, direct, "b")
		p.awaitFrozen(t, "configmaps", 2)
		if a, b := knows(t, lister, "a"), knows(t, lister, "b"); a != "1" || b != "" {
			t.Errorf("protobuf %t: frozen, the informer knows a as %q and b as %q", protobuf, a, b)
		}
		p.call(t, http.MethodPost, "/thaw", "")
		awaitKnows(t, lister, "a", "2")
		awaitKnows(t, lister, "b", "1")

		// After the proxy has dropped an event, the informer receives a later change of another
		// object, but not the dropped change.
		p.add(t, fmt.Sprintf("- {name: drop, %s, events: {types: [MODIFIED], names: [a]}, fault: {kind: DropEvent}}", match))
		update(t, direct, "a", "3")
		update(t, direct, "b", "2")
		awaitKnows(t, lister, "b", "2")
		if a := knows(t, lister, "a"); a != "2" {
			t.Errorf("protobuf %t: the informer knows a as %q although the event was dropped", protobuf, a)
		}
		p.awaitLogged(t, func(l client.LogEntry) bool {
			return l.Rule == "drop" && l.Fault == "DropEvent" && l.Event == "MODIFIED" && l.Name == "a" && l.Namespace == namespace
		})
		p.call(t, http.MethodDelete, "/rules", "")

		// After its watch is cut, the client lists the objects again and sees the dropped change.
		p.call(t, http.MethodPost, "/cut", match)
		awaitKnows(t, lister, "a", "3")
		p.awaitLogged(t, func(l client.LogEntry) bool {
			return l.Fault == "CutWatch" && l.Event == "" && l.Namespace == namespace
		})

		// An "expired resourceVersion" error on the watch also makes the client list again.
		p.add(t, fmt.Sprintf("- {name: drop, %s, events: {names: [a]}, fault: {kind: DropEvent}}\n"+
			"- {name: expire, %s, events: {names: [b]}, count: {times: 1}, fault: {kind: ExpireWatch}}", match, match))
		update(t, direct, "a", "4")
		update(t, direct, "b", "3")
		awaitKnows(t, lister, "b", "3")
		awaitKnows(t, lister, "a", "4")
		p.awaitFired(t, "expire", 1)
		p.call(t, http.MethodDelete, "/rules", "")
	}
}

// TestProxyInitialList checks that rules affect a streaming list only if they say so, and that the
// list never completes if its final bookmark is dropped.
func TestProxyInitialList(t *testing.T) {
	t.Parallel()
	s := sharedSandbox(t)
	for name, initial := range map[string]bool{"events only": false, "initial list too": true} {
		t.Run(name, func(t *testing.T) {
			p := startProxy(t, s, fmt.Sprintf(`
rules:
- name: bookmarks
  match: {resources: [configmaps]}
  events: {types: [BOOKMARK], initial: %t}
  fault: {kind: DropEvent}
- name: everything
  match: {resources: [configmaps]}
  fault: {kind: DropEvent}
`, initial))
			namespace, direct := inNamespace(t, s)
			create(t, direct, "a")
			informer, lister := inform(t, p.client(t, true), namespace)
			if initial {
				p.awaitFired(t, "bookmarks", 1)
				if informer.HasSynced() {
					t.Error("the informer has synced without the bookmark")
				}
				return
			}
			awaitSynced(t, informer)
			if a := knows(t, lister, "a"); a != "1" {
				t.Errorf("the informer knows a as %q", a)
			}
		})
	}
}

// TestProxyStaleInformer checks that a stale list followed by a frozen watch shows a client the old
// state, even if the client has just started and requests streaming lists.
func TestProxyStaleInformer(t *testing.T) {
	t.Parallel()
	s := sharedSandbox(t)
	namespace, direct := inNamespace(t, s)
	create(t, direct, "a")
	old, err := direct.Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	update(t, direct, "a", "2")
	p := startProxy(t, s, fmt.Sprintf(`
rules:
- {name: stale, match: {resources: [configmaps]}, fault: {kind: Stale, resourceVersion: %q}}
- {name: freeze, match: {resources: [configmaps]}, fault: {kind: Freeze}}
`, old.ResourceVersion))
	informer, lister := inform(t, p.client(t, true), namespace)
	awaitSynced(t, informer)
	p.awaitFrozen(t, "configmaps", 1)
	if a := knows(t, lister, "a"); a != "1" {
		t.Errorf("the informer knows a as %q, want the old state's 1", a)
	}
	p.call(t, http.MethodPost, "/thaw", "")
	awaitKnows(t, lister, "a", "2")
}

// TestProxyWatch checks that a client that watches without an informer receives the expected events
// under each kind of fault.
func TestProxyWatch(t *testing.T) {
	t.Parallel()
	s := sharedSandbox(t)
	p := startProxy(t, s, "")
	for name, tc := range map[string]struct {
		fault string
		want  string
		least time.Duration
	}{
		"passed":    {"", "ADDED first, ADDED second, ADDED third", 0},
		"twice":     {"DuplicateEvent", "ADDED first, ADDED second, ADDED second, ADDED third", 0},
		"dropped":   {"DropEvent", "ADDED first, ADDED third", 0},
		"late":      {"DelayEvent, for: 400ms", "ADDED first, ADDED second, ADDED third", 400 * time.Millisecond},
		"expired":   {"ExpireWatch", "ADDED first, ERROR Expired, end", 0},
		"broken":    {"CutWatch", "ADDED first, ERROR InternalError, end", 0},
		"error 410": {"Error, code: 410", "Expired", 0},
	} {
		for _, protobuf := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " ", protobuf), func(t *testing.T) {
				namespace, direct := inNamespace(t, s)
				// Match only this namespace, because the controller manager creates the ConfigMap
				// kube-root-ca.crt in every namespace.
				match := fmt.Sprintf("match: {verbs: [watch], namespaces: [%s]}", namespace)
				switch {
				case strings.HasPrefix(tc.fault, "Error"):
					p.add(t, fmt.Sprintf("- {name: rule, %s, fault: {kind: %s}}", match, tc.fault))
				case tc.fault != "":
					p.add(t, fmt.Sprintf("- {name: rule, %s, events: {names: [second]}, fault: {kind: %s}}", match, tc.fault))
				}
				defer p.call(t, http.MethodDelete, "/rules", "")
				list, err := direct.List(t.Context(), metav1.ListOptions{})
				if err != nil {
					t.Fatal(err)
				}
				watching, err := p.client(t, protobuf).CoreV1().ConfigMaps(namespace).Watch(t.Context(),
					metav1.ListOptions{ResourceVersion: list.ResourceVersion, FieldSelector: "metadata.name!=kube-root-ca.crt"})
				if err != nil {
					if got := string(apierrors.ReasonForError(err)); got != tc.want {
						t.Errorf("the watch: %v, want %s", err, tc.want)
					}
					return
				}
				defer watching.Stop()
				start := time.Now()
				for _, name := range []string{"first", "second", "third"} {
					create(t, direct, name)
				}
				if got := collect(watching); got != tc.want {
					t.Errorf("seen: %s\nwant: %s", got, tc.want)
				}
				if took := time.Since(start); took < tc.least {
					t.Errorf("it took %s, want at least %s", took, tc.least)
				}
			})
		}
	}
}

// TestProxyWatchWhoseClientGoes checks that the proxy no longer lists a watch as open after its
// client has disconnected, even if the watch was frozen, and that the log contains the watch.
func TestProxyWatchWhoseClientGoes(t *testing.T) {
	t.Parallel()
	s := sharedSandbox(t)
	p := startProxy(t, s, "")
	namespace, direct := inNamespace(t, s)
	for _, protocol := range []string{"h2", "http/1.1"} {
		config := p.config(t)
		config.NextProtos = []string{protocol}
		config.UserAgent = protocol
		watching, err := clientFor(t, config).CoreV1().ConfigMaps(namespace).Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		p.call(t, http.MethodPost, "/freeze", "match: {resources: [configmaps]}")
		create(t, direct, "for-"+strings.ReplaceAll(protocol, "/", "-"))
		p.awaitFrozen(t, "configmaps", 1)
		watching.Stop()
		waitFor(t, 10*time.Second, func() string {
			if text := p.call(t, http.MethodGet, "/watches", ""); strings.Contains(text, "configmaps") {
				return protocol + ": " + text
			}
			return ""
		})
		p.awaitLogged(t, func(l client.LogEntry) bool {
			return l.UserAgent == protocol && l.Verb == "watch" && l.Upstream == http.StatusOK && l.Event == ""
		})
		p.call(t, http.MethodPost, "/thaw", "")
	}
}

// collect returns the events of a watch up to the first event of the ConfigMap named "third", or
// until the watch is closed.
func collect(watching watch.Interface) string {
	var seen []string
	for {
		select {
		case event, open := <-watching.ResultChan():
			if !open {
				return strings.Join(append(seen, "end"), ", ")
			}
			switch o := event.Object.(type) {
			case *corev1.ConfigMap:
				seen = append(seen, fmt.Sprint(event.Type, " ", o.Name))
				if o.Name == "third" {
					return strings.Join(seen, ", ")
				}
			case *metav1.Status:
				seen = append(seen, fmt.Sprint(event.Type, " ", o.Reason))
			}
		case <-time.After(patience):
			return strings.Join(append(seen, "nothing more"), ", ")
		}
	}
}
