// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"tidekeeper.dev/tidekeeper/sandbox/internal/fault"
)

// encoded encodes a pod as JSON, as protobuf, or as protobuf that contains only the metadata.
func encoded(t *testing.T, how, phase string) []byte {
	t.Helper()
	pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"phase": phase}}, Status: corev1.PodStatus{Phase: corev1.PodPhase(phase)}}
	var text []byte
	var err error
	switch how {
	case "json":
		text, err = json.Marshal(pod)
	case "protobuf":
		info, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
		text, err = runtime.Encode(scheme.Codecs.EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion), pod)
	case "metadata":
		var raw []byte
		if raw, err = (&metav1.PartialObjectMetadata{ObjectMeta: pod.ObjectMeta}).Marshal(); err == nil {
			envelope := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}, Raw: raw}
			text, err = envelope.Marshal()
			text = append(bytes.Clone(protobufPrefix), text...)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestChange checks that an event is decoded together with its previous object in each encoding.
func TestChange(t *testing.T) {
	for _, how := range []string{"json", "protobuf", "metadata"} {
		t.Run(how, func(t *testing.T) {
			var h history
			change := func(kind, phase string) *fault.Change {
				return h.change(frame{event: fault.Event{Type: kind, Name: "a"}, object: encoded(t, how, phase)})
			}
			label := func(object map[string]any) string {
				labels, _ := object["metadata"].(map[string]any)["labels"].(map[string]any)
				return fmt.Sprint(labels["phase"])
			}
			first, second, gone, again := change("ADDED", "Pending"), change("MODIFIED", "Running"), change("DELETED", "Running"), change("ADDED", "Pending")
			if first == nil || first.Old != nil || label(first.Object) != "Pending" {
				t.Fatalf("the first: %+v", first)
			}
			if second == nil || label(second.Old) != "Pending" || label(second.Object) != "Running" {
				t.Errorf("the second: %+v", second)
			}
			if gone == nil || label(gone.Old) != "Running" {
				t.Errorf("its end: %+v", gone)
			}
			if again == nil || again.Old != nil {
				t.Errorf("another of that name: %+v", again)
			}
		})
	}
	var h history
	for name, f := range map[string]frame{
		"a bookmark":           {event: fault.Event{Type: "BOOKMARK"}, object: encoded(t, "json", "")},
		"nothing that is JSON": {event: fault.Event{Type: "ADDED"}, object: []byte("{")},
		"no protobuf":          {event: fault.Event{Type: "ADDED"}, object: append(bytes.Clone(protobufPrefix), 1, 2, 3)},
	} {
		if change := h.change(f); change != nil {
			t.Errorf("%s: %+v", name, change)
		}
	}
}

// TestMoment checks that a Stale rule answers a list as of the event recorded by a Mark rule with a
// condition.
func TestMoment(t *testing.T) {
	lists := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("watch") == "" {
			lists <- r.URL.Query().Get("resourceVersion")
			fmt.Fprint(w, `{"kind":"NodeList","apiVersion":"v1","items":[]}`)
			return
		}
		for _, object := range []string{
			`{"metadata":{"name":"one","resourceVersion":"5"},"spec":{"unschedulable":false}}`,
			`{"metadata":{"name":"one","resourceVersion":"7"},"spec":{"unschedulable":true}}`,
			`{"metadata":{"name":"one","resourceVersion":"8"},"spec":{"unschedulable":true}}`,
		} {
			fmt.Fprintf(w, "{\"type\":\"MODIFIED\",\"object\":%s}\n", object)
		}
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	rules, err := fault.Parse([]byte("rules:\n- {name: cordoned, when: 'old != null && object.spec.unschedulable && !old.spec.unschedulable', fault: {kind: Mark}}\n- fault: {kind: Stale, asOf: cordoned}"))
	if err != nil {
		t.Fatal(err)
	}
	s, config, log := serve(t, &rest.Config{Host: server.URL}, rules...)
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	list := func() string {
		response, err := client.Get(s.URL + "/api/v1/nodes")
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		return <-lists
	}
	if version := list(); version != "" {
		t.Errorf("before the moment, a list is as of %q", version)
	}
	watch, err := client.Get(s.URL + "/api/v1/nodes?watch=true")
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Body.Close()
	events := bufio.NewReader(watch.Body)
	for range 3 {
		if _, err := events.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	if version := list(); version != "7" {
		t.Errorf("after the moment, a list is as of %q, want 7", version)
	}
	if !strings.Contains(log.String(), `"fault":"Mark","rule":"cordoned"`) {
		t.Errorf("the log does not say when the moment was: %s", log.String())
	}
}

// TestWhenOfWrites checks that a condition matches creates, updates, merge patches, server-side
// apply, deletions and protobuf. It must not match a JSON patch, which contains operations instead
// of an object.
func TestWhenOfWrites(t *testing.T) {
	const size = `{"metadata":{"name":"one"},"spec":{"size":%d}}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if strings.HasSuffix(r.URL.Path, "/none") && r.Method != http.MethodPost {
			w.WriteHeader(http.StatusNotFound)
		}
		fmt.Fprintf(w, size, 5)
	}))
	t.Cleanup(server.Close)
	rules, err := fault.Parse([]byte(`rules:
- {name: shrinks, match: {resources: [boats.example.com]}, when: old != null && object != null && object.spec.size < old.spec.size, fault: {kind: Error, code: 409}}
- {name: made, match: {resources: [boats.example.com]}, when: old == null && object.spec.size == 1, fault: {kind: Error, code: 429}}
- {name: gone, match: {resources: [boats.example.com]}, when: object == null && old.spec.size == 5, fault: {kind: Error, code: 500}}
- {name: named, match: {resources: [configmaps]}, when: object.data.color == "red", fault: {kind: Error, code: 409}}`))
	if err != nil {
		t.Fatal(err)
	}
	s, config, log := serve(t, &rest.Config{Host: server.URL}, rules...)
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	red := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Name: "one"}, Data: map[string]string{"color": "red"}}
	encodedRed, err := runtime.Encode(protobuf.NewSerializer(scheme.Scheme, scheme.Scheme), red)
	if err != nil {
		t.Fatal(err)
	}
	const boats, maps = "/apis/example.com/v1/namespaces/shop/boats", "/api/v1/namespaces/shop/configmaps"
	for _, tc := range []struct {
		name, method, path, contentType, body string
		want                                  int
	}{
		{"an update that shrinks it", "PUT", boats + "/one", "application/json", fmt.Sprintf(size, 3), 409},
		{"an update that does not", "PUT", boats + "/one", "application/json", fmt.Sprintf(size, 5), 200},
		{"a patch that shrinks it", "PATCH", boats + "/one", "application/merge-patch+json", `{"spec":{"size":3}}`, 409},
		{"a patch of something else", "PATCH", boats + "/one", "application/merge-patch+json", `{"spec":{"color":"red"}}`, 200},
		{"an applied object in YAML", "PATCH", boats + "/one", "application/apply-patch+yaml", "spec: {size: 3}", 409},
		{"a list of operations", "PATCH", boats + "/one", "application/json-patch+json", `[{"op":"replace","path":"/spec/size","value":3}]`, 200},
		{"a creation", "POST", boats, "application/json", fmt.Sprintf(size, 1), 429},
		{"an object that is not there", "PUT", boats + "/none", "application/json", fmt.Sprintf(size, 1), 429},
		{"a deletion", "DELETE", boats + "/one", "", "", 500},
		{"a read", "GET", boats + "/one", "", "", 200},
		{"protobuf", "POST", maps, "application/vnd.kubernetes.protobuf", string(encodedRed), 409},
	} {
		request, err := http.NewRequestWithContext(t.Context(), tc.method, s.URL+tc.path, strings.NewReader(tc.body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", tc.contentType)
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != tc.want {
			t.Errorf("%s: %d, want %d", tc.name, response.StatusCode, tc.want)
		}
	}
	// The proxy's own reads are not logged, and requests with an injected error are not forwarded.
	if strings.Contains(log.String(), `"upstream":200,"fault":"Error"`) || strings.Contains(log.String(), `"upstream":404`) {
		t.Errorf("the log has more than what clients asked for:\n%s", log.String())
	}
}
