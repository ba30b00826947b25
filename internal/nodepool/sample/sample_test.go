// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package sample

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// objects parses manifests that are separated by lines with ---.
func objects(t testing.TB, manifests string) (list []*unstructured.Unstructured) {
	t.Helper()
	for part := range strings.SplitSeq(manifests, "---\n") {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(part), &o.Object); err != nil {
			t.Fatal(err)
		}
		list = append(list, o)
	}
	return list
}

const (
	member = `
apiVersion: v1
kind: Node
metadata:
  name: a
  labels: {kubernetes.io/hostname: a, kubernetes.io/arch: arm64, zone: a, team: x}
  annotations: {tidekeeper.dev/node-pools: '{"gpu":{"labels":{"team":"x"},"taints":{"gpu:NoSchedule":""}}}'}
spec:
  taints: [{key: gpu, effect: NoSchedule}, {key: node.kubernetes.io/unschedulable, effect: NoSchedule}, {key: own, value: v, effect: NoExecute}]
status:
  allocatable: {cpu: "4", memory: 8Gi, pods: "110", example.com/gpu: "1", hugepages-2Mi: "0"}
`
	other = `
apiVersion: v1
kind: Node
metadata:
  name: b
  labels: {kubernetes.io/hostname: b, kubernetes.io/arch: arm64, zone: b}
status:
  allocatable: {cpu: "3500m", memory: 16Gi, pods: "110"}
`
	karpenter = `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec:
  template:
    metadata: {labels: {team: ops}}
    spec:
      requirements:
      - {key: kubernetes.io/arch, operator: In, values: [amd64]}
      - {key: karpenter.sh/capacity-type, operator: In, values: [spot, on-demand]}
      - {key: generation, operator: Gt, values: ["2"]}
      taints: [{key: dedicated, value: ops, effect: NoSchedule}]
      startupTaints: [{key: example.com/agent-not-ready, effect: NoExecute}]
`
	claim = `
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata: {name: default-x1, labels: {karpenter.sh/nodepool: default, team: ops, karpenter.sh/capacity-type: spot}}
spec:
  taints: [{key: dedicated, value: ops, effect: NoSchedule}]
status: {allocatable: {cpu: "2", memory: 4Gi, pods: "29"}}
`
	machines = `
apiVersion: cluster.x-k8s.io/v1beta2
kind: MachineDeployment
metadata:
  name: workers
  namespace: default
  annotations:
    capacity.cluster-autoscaler.kubernetes.io/cpu: "16"
    capacity.cluster-autoscaler.kubernetes.io/memory: 128G
    capacity.cluster-autoscaler.kubernetes.io/gpu-type: nvidia.com/gpu
    capacity.cluster-autoscaler.kubernetes.io/gpu-count: "2"
    capacity.cluster-autoscaler.kubernetes.io/labels: "a=1, b="
    capacity.cluster-autoscaler.kubernetes.io/taints: "k1=v1:NoSchedule,k2:NoExecute"
spec: {template: {metadata: {labels: {node-role.kubernetes.io/gpu: "", app: not-on-nodes}}}}
`
)

// TestTemplate checks the template of each kind of sample, and of several samples.
func TestTemplate(t *testing.T) {
	for name, tt := range map[string]struct{ samples, want string }{
		"a node, without the settings of pools": {member, `
allocatable: {cpu: "4", memory: 8Gi, pods: "110", example.com/gpu: "1"}
labels: {kubernetes.io/arch: arm64, zone: a}
taints: [{key: own, value: v, effect: NoExecute}]
`},
		"two nodes": {member + "---\n" + other, `
allocatable: {cpu: 3500m, memory: 8Gi, pods: "110"}
labels: {kubernetes.io/arch: arm64}
taints: [{key: own, value: v, effect: NoExecute}]
`},
		"a NodePool and a NodeClaim of Karpenter": {karpenter + "---\n" + claim, `
allocatable: {cpu: "2", memory: 4Gi, pods: "29"}
labels: {kubernetes.io/arch: amd64, karpenter.sh/nodepool: default, team: ops, karpenter.sh/capacity-type: spot}
taints: [{key: dedicated, value: ops, effect: NoSchedule}]
`},
		"a NodeClaim and a NodePool of Karpenter": {claim + "---\n" + karpenter, `
allocatable: {cpu: "2", memory: 4Gi, pods: "29"}
labels: {kubernetes.io/arch: amd64, karpenter.sh/nodepool: default, team: ops, karpenter.sh/capacity-type: spot}
taints: [{key: dedicated, value: ops, effect: NoSchedule}]
`},
		"the annotations for the autoscaler": {machines, `
allocatable: {cpu: "16", memory: 128G, pods: "110", nvidia.com/gpu: "2"}
labels: {node-role.kubernetes.io/gpu: "", a: "1", b: ""}
taints: [{key: k1, value: v1, effect: NoSchedule}, {key: k2, effect: NoExecute}]
`},
	} {
		got, err := Template(objects(t, tt.samples))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		text, err := yaml.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		var is, want any
		if err := yaml.Unmarshal(text, &is); err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal([]byte(tt.want), &want); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, is); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestNoTemplate checks the errors for samples that do not describe a node.
func TestNoTemplate(t *testing.T) {
	for samples, want := range map[string]string{
		karpenter: "no object says how much cpu, memory, pods a node has: add a Node, or for Karpenter a NodeClaim",
		strings.Replace(other, "memory: 16Gi, ", "", 1):         "no object says how much memory a node has",
		"{apiVersion: apps/v1, kind: Deployment}":               "apps/v1 does not describe nodes",
		"{apiVersion: tidekeeper.dev/v1, kind: NodePool}":       "tidekeeper.dev/v1 does not describe nodes",
		strings.Replace(machines, `"16"`, `"16 cores"`, 1):      `kubernetes.io/cpu: "16 cores" is not an amount`,
		strings.Replace(machines, `"a=1, b="`, `"a"`, 1):        `kubernetes.io/labels: "a" is not KEY=VALUE`,
		strings.Replace(machines, ":NoSchedule", "", 1):         `kubernetes.io/taints: "k1=v1" is not KEY=VALUE:EFFECT`,
		strings.Replace(machines, "nvidia.com/gpu", `""`, 1):    "gpu-count and gpu-type",
		strings.ReplaceAll(machines, "cluster-autoscaler", "x"): "it has no annotations",
	} {
		if _, err := Template(objects(t, samples)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, err := Template(nil); err == nil {
		t.Error("no samples")
	}
}

// FuzzTemplate checks that no object makes Template panic, and that each template has the amounts that
// the API requires.
func FuzzTemplate(f *testing.F) {
	for _, seed := range []string{member, other, karpenter, claim, machines} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		o := &unstructured.Unstructured{}
		if yaml.Unmarshal([]byte(text), &o.Object) != nil || o.Object == nil {
			return
		}
		template, err := Template([]*unstructured.Unstructured{o})
		if err != nil {
			return
		}
		for _, name := range []corev1.ResourceName{"cpu", "memory", "pods"} {
			if amount := template.Allocatable[name]; amount.Sign() <= 0 {
				t.Errorf("there is no %s", name)
			}
		}
	})
}
