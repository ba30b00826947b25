// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package incluster

import (
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

const twoWebhooks = `
kind: ValidatingWebhookConfiguration
metadata: {name: shop, annotations: {mine: kept}}
webhooks:
- name: a
  clientConfig: {caBundle: Zm9v, service: {namespace: shop, name: webhook, port: 8443, path: /validate}}
- name: b
  clientConfig: {service: {namespace: shop, name: other, port: 443}}
`

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	data, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = u.UnmarshalJSON(data)
	}
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// serves returns a target that serves the webhooks of the Service shop/webhook at address.
func serves(t *testing.T, address string) target {
	return func(service types.NamespacedName, port int32) (string, bool, error) {
		if service.Namespace != "shop" || service.Name != "webhook" {
			return "", false, nil
		}
		if port != 8443 {
			t.Errorf("port %d of the Service, want 8443", port)
		}
		return address, true, nil
	}
}

func clientConfigs(o *unstructured.Unstructured) map[string]map[string]any {
	all := map[string]map[string]any{}
	for _, w := range webhooksOf(o) {
		all[w.name] = w.clientConfig()
	}
	return all
}

func TestRedirectAndRestore(t *testing.T) {
	before := object(t, twoWebhooks)
	o := before.DeepCopy()
	if does, err := redirect(o, "shop/operator-1", []byte("foo"), serves(t, "127.0.0.1:1")); err != nil || !does {
		t.Fatalf("redirect: %t, %v", does, err)
	}
	want := map[string]map[string]any{
		"a": {"url": "https://127.0.0.1:1/validate", "caBundle": "Zm9v"},
		"b": clientConfigs(before)["b"],
	}
	if got := clientConfigs(o); !reflect.DeepEqual(got, want) {
		t.Errorf("redirected: %v, want %v", got, want)
	}
	if does, err := redirect(o, "shop/operator-2", nil, serves(t, "127.0.0.1:2")); err != nil || does {
		t.Errorf("what leads to one program was redirected to another: %t, %v", does, err)
	}
	if does, err := restore(o, func(pod string) bool { return pod == "shop/operator-2" }); err != nil || does {
		t.Errorf("one program restored what leads to another: %t, %v", does, err)
	}
	if does, err := restore(o, func(pod string) bool { return pod == "shop/operator-1" }); err != nil || !does {
		t.Errorf("restore: %t, %v", does, err)
	}
	if !reflect.DeepEqual(o, before) {
		t.Errorf("restored:\n%v\nwant\n%v", o, before)
	}
}

// TestRestoreKeepsChangesOfOthers checks that restore does not revert changes that another client
// has made in the meantime.
func TestRestoreKeepsChangesOfOthers(t *testing.T) {
	o := object(t, twoWebhooks)
	if _, err := redirect(o, "shop/operator-1", []byte("foo"), serves(t, "127.0.0.1:1")); err != nil {
		t.Fatal(err)
	}
	changed := map[string]any{"url": "https://webhook.example.com"}
	webhooksOf(o)[0].owner["clientConfig"] = changed
	if _, err := restore(o, func(string) bool { return true }); err != nil {
		t.Fatal(err)
	}
	if got := clientConfigs(o)["a"]; !reflect.DeepEqual(got, changed) {
		t.Errorf("after restore: %v, want %v", got, changed)
	}
	if _, found := o.GetAnnotations()[redirectedAnnotation]; found {
		t.Error("the annotation is left")
	}
}

func TestDamagedAnnotationIsReported(t *testing.T) {
	o := object(t, twoWebhooks)
	o.SetAnnotations(map[string]string{redirectedAnnotation: "{"})
	if _, err := redirect(o, "shop/operator-1", nil, serves(t, "127.0.0.1:1")); err == nil || !strings.Contains(err.Error(), redirectedAnnotation) {
		t.Errorf("redirect: %v, want an error that names the annotation", err)
	}
}

func TestPodNameOf(t *testing.T) {
	for program, want := range map[string]string{
		"./bin/Operator_v2.exe": "operator-v2-exe",
		"/usr/bin/_":            "program",
		strings.Repeat("a", 90): strings.Repeat("a", 50),
	} {
		if got := podNameOf(program); got != want {
			t.Errorf("%s: %q, want %q", program, got, want)
		}
	}
}
