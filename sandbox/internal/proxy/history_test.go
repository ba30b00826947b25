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
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"tidekeeper.dev/tidekeeper/sandbox/internal/fault"
)

// encoded writes a pod in JSON, in protobuf, or its metadata alone in protobuf.
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

// TestChange: an event has its object and what that was before, in each encoding.
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

// TestMoment: a list is as of the moment at which an object that the client watches has
// changed in a certain way.
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
