// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const shopDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
spec:
  group: example.com
  scope: Cluster
  names: {kind: Shop, plural: shoppes}
  versions:
  - name: v1
    subresources: {scale: {specReplicasPath: .spec.size}}
    schema:
      openAPIV3Schema:
        properties:
          spec:
            properties:
              size: {type: integer}
              open: {type: boolean}
              full: {type: integer, maximum: 3}
              tills: {type: integer, maximum: 5}
              mode: {type: string, enum: [Fast, Slow]}
              fixed: {type: boolean, x-kubernetes-validations: [{rule: self == oldSelf}]}
              text: {type: string}
              oven: {properties: {heat: {type: integer}}}
`

// TestDraft checks the steps of drafted workloads: for a custom resource, all fields that can be
// edited, up to a maximum number, and for a kind of Kubernetes, which has no definition, the replicas.
func TestDraft(t *testing.T) {
	for _, c := range []struct {
		name, sample, want string
	}{
		{
			name:   "a custom resource",
			sample: `{apiVersion: example.com/v1, kind: Shop, metadata: {name: a}, spec: {fixed: true, full: 3, mode: Fast, open: true, oven: {heat: 1}, text: b, tills: 5}}`,
			want: `# What users do with a Shop. After each step, explore waits until nothing happens any more.
install: [config/crd, 'other crd']
steps:
- name: a Shop is created
  apply: sample.yaml
# What users wait for, so that it is a finding if it never comes:
# - wait: {resource: shoppes.example.com, name: a, for: 'object.status.ready'}
- name: spec.size becomes 3
  patch: {resource: shoppes.example.com, name: a, merge: {spec: {size: 3}}}
- name: spec.size becomes 1
  patch: {resource: shoppes.example.com, name: a, merge: {spec: {size: 1}}}
- name: spec.mode becomes "Slow"
  patch: {resource: shoppes.example.com, name: a, merge: {spec: {mode: "Slow"}}}
- name: spec.open becomes false
  patch: {resource: shoppes.example.com, name: a, merge: {spec: {open: false}}}
- name: spec.oven.heat becomes 2
  patch: {resource: shoppes.example.com, name: a, merge: {spec: {oven: {heat: 2}}}}
- name: it is deleted
  delete: {resource: shoppes.example.com, name: a}
- wait: {resource: shoppes.example.com, name: a, for: deleted}
`,
		},
		{
			name:   "a kind of Kubernetes",
			sample: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: b}, spec: {replicas: 2, paused: true}}`,
			want: `# What users do with a Deployment. After each step, explore waits until nothing happens any more.
install: [config/crd, 'other crd']
steps:
- name: a Deployment is created
  apply: sample.yaml
# What users wait for, so that it is a finding if it never comes:
# - wait: {resource: deployments.apps, namespace: b, name: a, for: 'object.status.ready'}
- name: spec.replicas becomes 4
  patch: {resource: deployments.apps, namespace: b, name: a, merge: {spec: {replicas: 4}}}
- name: spec.replicas becomes 2
  patch: {resource: deployments.apps, namespace: b, name: a, merge: {spec: {replicas: 2}}}
- name: it is deleted
  delete: {resource: deployments.apps, namespace: b, name: a}
- wait: {resource: deployments.apps, namespace: b, name: a, for: deleted}
`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := &Draft{
				Install: []string{"config/crd", "other crd"}, Sample: "sample.yaml",
				Objects:     []*unstructured.Unstructured{decoded(t, "{apiVersion: v1, kind: Namespace, metadata: {name: b}}"), decoded(t, c.sample)},
				Definitions: []*unstructured.Unstructured{decoded(t, shopDefinition)},
			}
			if strings.Contains(c.sample, "Deployment") {
				d.Objects = d.Objects[1:]
			}
			got, err := d.Text()
			if err != nil || got != c.want {
				t.Errorf("got %v\n%s\nwant\n%s", err, got, c.want)
			}
		})
	}
}

// TestDraftOfANameLikeANumber checks that names are quoted that YAML would not read as a string.
func TestDraftOfANameLikeANumber(t *testing.T) {
	d := &Draft{Sample: "sample.yaml", Objects: []*unstructured.Unstructured{decoded(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: "1", namespace: "true"}}`)}}
	if got, err := d.Text(); err != nil || !strings.Contains(got, "delete: {resource: configmaps, namespace: 'true', name: '1'}") {
		t.Errorf("got %v\n%s", err, got)
	}
}

// TestDraftNeedsAName checks that a sample without a name is rejected: a step could not name it.
func TestDraftNeedsAName(t *testing.T) {
	for sample, want := range map[string]string{"": "it has no object", "{apiVersion: v1, kind: Pod, metadata: {generateName: a-}}": "the Pod in it has no metadata.name"} {
		d := &Draft{Sample: "sample.yaml"}
		if sample != "" {
			d.Objects = append(d.Objects, decoded(t, sample))
		}
		if text, err := d.Text(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %q, %v, want an error with %q", sample, text, err, want)
		}
	}
}

// decoded returns an object from YAML, with numbers as in a manifest that is read.
func decoded(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	json, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON(json); err != nil {
		t.Fatal(err)
	}
	return o
}
