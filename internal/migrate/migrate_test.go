// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

func TestConvert(t *testing.T) {
	const pool = "apiVersion: nodes.lailin.xyz/v1\nkind: NodePool\nmetadata: {name: worker}\n"
	const eru = "apiVersion: mtsre.meitu.com/v1\nkind: Eru\nmetadata: {name: web, namespace: shop}\n"
	const deployment = "\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: shop, annotations: {mtsre.meitu.com/eru: \"true\"}}\n"
	const utc = "note: spec.timeZone: UTC for 1 schedule: the original has no such field and ran on the clock of its controller: --time-zone Asia/Shanghai, for example, if the controller ran there"
	restart := func(spec string) string {
		return "shop/web {" + spec + "}"
	}
	for _, tc := range []struct {
		name, in string
		options  Options
		want     []string // want lists the converted objects, one per line.
		commands []string
		remarks  []string
	}{
		{
			name: "the example of the original",
			in: pool + `spec:
  taints: [{key: node-pool.lailin.xyz, value: worker, effect: NoSchedule}]
  labels: {"node-pool.lailin.xyz/worker": "10"}
  handler: runc
status: {status: 200, nodeCount: 2}`,
			want: []string{`worker {"handler":"runc","labels":{"node-pool.lailin.xyz/worker":"10"},"taints":[{"effect":"NoSchedule","key":"node-pool.lailin.xyz","value":"worker"}]}`},
			commands: []string{
				`kubectl patch runtimeclass node-pool-worker --type=merge -p '{"metadata":{"ownerReferences":[{"apiVersion":"tidekeeper.dev/v1","kind":"NodePool","name":"worker","controller":true,"blockOwnerDeletion":true,"uid":"'"$(kubectl get nodepools.tidekeeper.dev worker -o 'jsonpath={.metadata.uid}')"'"}]}}'`,
				`kubectl annotate nodes -l node-role.kubernetes.io/worker 'tidekeeper.dev/node-pools={"worker":{"labels":{"node-pool.lailin.xyz/worker":"10"},"taints":{"node-pool.lailin.xyz:NoSchedule":"worker"}}}'`,
			},
		},
		{name: "a pool that only counts", in: pool, want: []string{"worker {}"}},
		{
			// A node has a single ownership annotation, so a command for each pool would overwrite
			// the other pool's entry.
			name: "nodes in two pools",
			in: pool + "spec: {labels: {a: \"1\"}}\n---\n" + strings.Replace(pool, "worker", "gpu", 1) + "spec: {labels: {b: \"2\"}}\n---\n" +
				strings.Replace(pool, "worker", "counts", 1),
			want: []string{"counts {}", `gpu {"labels":{"b":"2"}}`, `worker {"labels":{"a":"1"}}`},
			commands: []string{
				`kubectl annotate nodes -l 'node-role.kubernetes.io/gpu,!node-role.kubernetes.io/worker' 'tidekeeper.dev/node-pools={"gpu":{"labels":{"b":"2"}}}'`,
				`kubectl annotate nodes -l node-role.kubernetes.io/gpu,node-role.kubernetes.io/worker 'tidekeeper.dev/node-pools={"gpu":{"labels":{"b":"2"}},"worker":{"labels":{"a":"1"}}}'`,
				`kubectl annotate nodes -l 'node-role.kubernetes.io/worker,!node-role.kubernetes.io/gpu' 'tidekeeper.dev/node-pools={"worker":{"labels":{"a":"1"}}}'`,
			},
		},
		{
			name: "what admission refuses is left out, and the rest is kept",
			in: pool + `spec:
  taints:
  - {key: node.kubernetes.io/unreachable, effect: NoExecute}
  - {key: dedicated, value: a, effect: NoSchedule}
  - {key: dedicated, value: b, effect: NoSchedule}
  - {key: dedicated, value: a, effect: Never}
  - {key: dedicated, value: "a b", effect: NoExecute}
  - {key: "a/b/c", effect: NoExecute}
  - {key: slow, effect: NoExecute, timeAdded: "2021-05-11T00:00:00Z"}
  labels: {kubernetes.io/os: linux, topology.kubernetes.io/zone: a, node-role.kubernetes.io/worker: "", node-role.kubernetes.io/other: "", "no key": a, value: "no value", fine: ""}
  handler: Run_C`,
			want: []string{`worker {"labels":{"fine":"","node-role.kubernetes.io/other":""},"taints":[{"effect":"NoSchedule","key":"dedicated","value":"a"},{"effect":"NoExecute","key":"slow"}]}`},
			commands: []string{
				`kubectl annotate nodes -l node-role.kubernetes.io/worker 'tidekeeper.dev/node-pools={"worker":{"labels":{"fine":"","node-role.kubernetes.io/other":""},"taints":{"dedicated:NoSchedule":"a","slow:NoExecute":""}}}'`,
			},
			remarks: []string{
				`left out: NodePool worker: spec.labels["kubernetes.io/os"]: belongs to the kubelet, the cloud provider or Tidekeeper, and is refused: let its owner set it`,
				`left out: NodePool worker: spec.labels["no key"]: is not a label key: letters, digits, '-', '_' and '.', after an optional DNS prefix and '/'`,
				`left out: NodePool worker: spec.labels["node-role.kubernetes.io/worker"]: makes a node a member of this pool, and is refused: set it on the nodes that are to be members`,
				`left out: NodePool worker: spec.labels["topology.kubernetes.io/zone"]: belongs to the kubelet, the cloud provider or Tidekeeper, and is refused: let its owner set it`,
				`left out: NodePool worker: spec.labels["value"]: "no value" is not a label value: at most 63 letters, digits, '-', '_' and '.'`,
				`left out: NodePool worker: spec.taints[0]: node.kubernetes.io/unreachable belongs to the node lifecycle controller, the cloud provider or Tidekeeper, and is refused: let its owner set it`,
				`left out: NodePool worker: spec.taints[2]: dedicated:NoSchedule appears twice, and a node has it once: the first is taken`,
				`left out: NodePool worker: spec.taints[3]: "Never" is not an effect: NoSchedule, PreferNoSchedule or NoExecute`,
				`left out: NodePool worker: spec.taints[4]: "a b" is not a taint value: at most 63 letters, digits, '-', '_' and '.'`,
				`left out: NodePool worker: spec.taints[5]: "a/b/c" is not a taint key: letters, digits, '-', '_' and '.', after an optional DNS prefix and '/'`,
				`left out: NodePool worker: spec.taints[6].timeAdded: is set on each node when the taint is added`,
				`left out: NodePool worker: spec.handler: "Run_C" is not a handler name: set spec.handler, in lower-case letters, digits and '-'`,
			},
		},
		{
			name:    "a field that the original does not have",
			in:      pool + "spec: {label: {a: b}}\ntaints: []",
			want:    []string{"worker {}"},
			remarks: []string{"left out: NodePool worker: taints: the original has no such field: move it into the spec, if it belongs there", `left out: NodePool worker: spec: unknown field "label": check the spelling`},
		},
		{
			name: "a number for a text",
			in:   pool + "spec: {labels: {a: 10}}",
			remarks: []string{
				"left out: NodePool worker: spec.labels: has a value of the wrong type, number: correct the type (a text that looks like a number or a boolean needs quotes), and convert it again",
			},
		},
		{name: "a spec that is none", in: pool + "spec: [1]", remarks: []string{
			"left out: NodePool worker: spec: has a value of the wrong type, array: correct the type (a text that looks like a number or a boolean needs quotes), and convert it again",
		}},
		{
			name:    "another version",
			in:      "apiVersion: nodes.lailin.xyz/v1beta1\nkind: NodePool\nmetadata: {name: worker}",
			remarks: []string{"left out: NodePool worker: apiVersion: only nodes.lailin.xyz/v1 NodePool and mtsre.meitu.com/v1 Eru can be read: convert it to one of these"},
		},
		{
			name: "one that is being deleted",
			in:   "apiVersion: nodes.lailin.xyz/v1\nkind: NodePool\nmetadata: {name: worker, deletionTimestamp: \"2021-05-11T00:00:00Z\"}", remarks: []string{
				"left out: NodePool worker: is being deleted: wait until it is gone, or create a new one",
			},
		},
		{name: "one that is there twice", in: pool + "---\n" + pool, want: []string{"worker {}"}, remarks: []string{"left out: NodePool worker: was read before, from the cluster: keep one of the two"}},
		{
			name: "ours already, and what is none of our business",
			in:   "apiVersion: tidekeeper.dev/v1\nkind: NodePool\nmetadata: {name: worker}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}",
			remarks: []string{
				"note: NodePool worker: is already Tidekeeper's",
				"note: 1 object of other kinds ignored (ConfigMap)",
			},
		},

		{
			name:    "an Eru that a person wrote",
			in:      eru + `spec: {deploymentname: web, enabled: true, schedule: "0  3 * * 1-5"}`,
			want:    []string{restart(`"schedule":"0 3 * * 1-5","suspend":false,"targetRef":{"kind":"Deployment","name":"web"},"timeZone":"UTC"`)},
			remarks: []string{utc},
		},
		{
			name:    "the zone of the original's controller",
			in:      eru + `spec: {deploymentName: web, enabled: false, schedule: "0 3 * * *"}`,
			options: Options{TimeZone: "Asia/Shanghai"},
			want:    []string{restart(`"schedule":"0 3 * * *","suspend":true,"targetRef":{"kind":"Deployment","name":"web"},"timeZone":"Asia/Shanghai"`)},
		},
		{
			name:    "all suspended, while the original still runs",
			in:      eru + `spec: {deploymentname: web, enabled: true, schedule: "@daily"}`,
			options: Options{TimeZone: "UTC", Suspended: true},
			want:    []string{restart(`"schedule":"@daily","suspend":true,"targetRef":{"kind":"Deployment","name":"web"},"timeZone":"UTC"`)},
		},
		{
			name:    "a schedule with its zone and with seconds",
			in:      eru + `spec: {deploymentname: web, enabled: true, schedule: "CRON_TZ=Asia/Shanghai 0 30 3 * * *"}`,
			want:    []string{restart(`"schedule":"30 3 * * *","suspend":false,"targetRef":{"kind":"Deployment","name":"web"},"timeZone":"Asia/Shanghai"`)},
			remarks: []string{`note: Eru shop/web: spec.schedule: the first of the six fields of "CRON_TZ=Asia/Shanghai 0 30 3 * * *" is the second 0`},
		},
		{name: "a schedule that ours has not", in: eru + `spec: {deploymentname: web, enabled: true, schedule: "@every 6h"}`, remarks: []string{
			`left out: Eru shop/web: spec.schedule: schedule "@every 6h": @every is not supported, as it has no fixed times: write for example "*/30 * * * *" or "0 */6 * * *": change it and convert it again`,
		}},
		{name: "a second of every minute", in: eru + `spec: {deploymentname: web, enabled: true, schedule: "30 0 3 * * *"}`, remarks: []string{
			`left out: Eru shop/web: spec.schedule: schedule "30 0 3 * * *": has 6 fields: write five (minute, hour, day-of-month, month, day-of-week), without seconds or years: change it and convert it again`,
		}},
		{name: "no schedule", in: eru + `spec: {deploymentname: web, enabled: true}`, remarks: []string{
			"left out: Eru shop/web: spec.schedule: is missing, so that nothing was ever restarted: set a schedule, such as 0 0 * * *",
		}},
		{name: "no Deployment", in: eru + `spec: {schedule: "@daily"}`, remarks: []string{
			"left out: Eru shop/web: spec.deploymentname: is missing: name a Deployment of the same namespace",
		}},
		{name: "two Deployments", in: eru + `spec: {deploymentname: a, deploymentName: b, schedule: "@daily"}`, remarks: []string{
			"left out: Eru shop/web: spec.deploymentName: differs from spec.deploymentname: keep one of the two",
		}},
		{
			name: "what stands on the object",
			in: `apiVersion: mtsre.meitu.com/v1
kind: Eru
metadata:
  name: web
  namespace: shop
  labels: {team: infra, app.kubernetes.io/instance: shop}
  annotations:
    owner: infra@example.com
    argocd.argoproj.io/tracking-id: shop
    mtsre.meitu.com/deploymentName: '"web"'
    mtsre.meitu.com/schedule: '"0 1 * * *"'
    kubectl.kubernetes.io/last-applied-configuration: "{}"
  finalizers: [example.com/hold]
  ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: a, uid: b}]
spec: {deploymentname: web, schedule: "0 2 * * *"}`,
			options: Options{TimeZone: "UTC"},
			want:    []string{`shop/web {"schedule":"0 2 * * *","suspend":true,"targetRef":{"kind":"Deployment","name":"web"},"timeZone":"UTC"} labels map[team:infra] annotations map[owner:infra@example.com]`},
			remarks: []string{
				`note: Eru shop/web: metadata.annotations["mtsre.meitu.com/schedule"]: is "0 1 * * *", and the spec has "0 2 * * *": the original had not seen the change yet: the spec counts`,
				`left out: Eru shop/web: metadata.labels["app.kubernetes.io/instance"]: belongs to the tool that manages the original: have the tool manage the new object`,
				`left out: Eru shop/web: metadata.annotations["argocd.argoproj.io/tracking-id"]: belongs to the tool that manages the original: have the tool manage the new object`,
				`left out: Eru shop/web: metadata.ownerReferences: the new object is not deleted with its owner: delete it when the owner is deleted`,
				`note: Eru shop/web: metadata.finalizers: are for the original's controller to remove: docs/tasks/move-from-the-original-operators.md says how to delete the original without it`,
				`note: Eru shop/web: the original created it because of an annotation on its Deployment, which was not read: it will not be deleted with the Deployment: read the Deployment too, if it is still annotated`,
			},
		},
		{
			name:    "no such Deployment",
			in:      eru + `spec: {deploymentname: gone, schedule: "@daily"}`,
			options: Options{TimeZone: "UTC", Complete: true},
			want:    []string{restart(`"schedule":"@daily","suspend":true,"targetRef":{"kind":"Deployment","name":"gone"},"timeZone":"UTC"`)},
			remarks: []string{"note: Eru shop/web: spec.deploymentname: there is no Deployment gone: it will report TargetNotFound and wait for one"},
		},

		{
			name:     "an Eru made by an annotation stays one",
			in:       eru + `spec: {deploymentname: web, enabled: true, schedule: "0 3 * * *"}` + deployment,
			options:  Options{TimeZone: "Asia/Shanghai"},
			commands: []string{`kubectl annotate deployment web -n shop tidekeeper.dev/scheduled-restart=true 'tidekeeper.dev/restart-schedule=0 3 * * *' tidekeeper.dev/restart-time-zone=Asia/Shanghai`},
		},
		{
			name:     "one that is disabled",
			in:       eru + `spec: {deploymentname: web, enabled: false, schedule: "0 0 * * *"}` + deployment,
			options:  Options{TimeZone: "UTC"},
			commands: []string{"kubectl annotate deployment web -n shop tidekeeper.dev/scheduled-restart=true"},
		},
		{
			name:    "one that is disabled, with another schedule",
			in:      eru + `spec: {deploymentname: web, enabled: false, schedule: "0 3 * * *"}` + deployment,
			options: Options{TimeZone: "UTC"},
			commands: []string{
				"kubectl annotate deployment web -n shop tidekeeper.dev/scheduled-restart=true",
				`kubectl wait --for=create --timeout=60s scheduledrestarts.tidekeeper.dev/web -n shop && kubectl patch scheduledrestarts.tidekeeper.dev/web -n shop --type=merge -p '{"spec":{"schedule":"0 3 * * *"}}'`,
			},
		},
		{
			name:     "one that is enabled later",
			in:       eru + `spec: {deploymentname: web, enabled: true, schedule: "0 3 * * *"}` + deployment,
			options:  Options{TimeZone: "UTC", Suspended: true},
			commands: []string{"kubectl annotate deployment web -n shop tidekeeper.dev/scheduled-restart=true"},
		},
		{
			name:     "an annotation whose Eru is not there yet",
			in:       deployment,
			commands: []string{"kubectl annotate deployment web -n shop tidekeeper.dev/scheduled-restart=true"},
			remarks:  []string{utc},
		},
		{
			name: "opted in already",
			in: eru + `spec: {deploymentname: web, enabled: true, schedule: "0 3 * * *"}` + "\n---\n" +
				`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop, annotations: {mtsre.meitu.com/eru: "true", tidekeeper.dev/scheduled-restart: "true", tidekeeper.dev/restart-schedule: "0 3 * * *"}}}`,
			options: Options{TimeZone: "UTC"},
			remarks: []string{"note: Eru shop/web: is already opted in"},
		},
		{
			name:    "an annotation with another value",
			in:      strings.Replace(deployment, `"true"`, `"yes"`, 1),
			remarks: []string{`note: Deployment shop/web: metadata.annotations["mtsre.meitu.com/eru"]: is "yes" and not "true", which the original ignores`},
		},
		{
			name:    "an Eru of the Deployment's name for another one",
			in:      eru + `spec: {deploymentname: api, schedule: "@daily"}` + deployment,
			options: Options{TimeZone: "UTC"},
			want:    []string{restart(`"schedule":"@daily","suspend":true,"targetRef":{"kind":"Deployment","name":"api"},"timeZone":"UTC"`)},
			remarks: []string{`left out: Deployment shop/web: metadata.annotations["mtsre.meitu.com/eru"]: the Eru of its name is for another Deployment: rename one of the two`},
		},
		{
			name: "labels on an Eru that the opt-in makes",
			in: `{apiVersion: mtsre.meitu.com/v1, kind: Eru, metadata: {name: web, namespace: shop, labels: {team: infra}, annotations: {owner: me}}, spec: {deploymentname: web, schedule: "0 0 * * *"}}` +
				deployment,
			options:  Options{TimeZone: "UTC"},
			commands: []string{"kubectl annotate deployment web -n shop tidekeeper.dev/scheduled-restart=true"},
			remarks: []string{
				`left out: Eru shop/web: metadata.labels["team"]: the opt-in creates the object, and cannot set labels: kubectl label it afterwards`,
				`left out: Eru shop/web: metadata.annotations["owner"]: the opt-in creates the object, and cannot set annotations: kubectl annotate it afterwards`,
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			objects, err := read([]byte(tc.in))
			if err != nil {
				t.Fatal(err)
			}
			result := Convert(objects, tc.options)
			if diff := cmp.Diff(tc.want, outOf(t, result)); diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
			var commands, remarks []string
			for _, c := range result.ManualSteps {
				commands = append(commands, c.Line)
			}
			for _, r := range result.Remarks {
				remarks = append(remarks, r.String())
			}
			if diff := cmp.Diff(tc.commands, commands); diff != "" {
				t.Errorf("commands (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.remarks, remarks); diff != "" {
				t.Errorf("remarks (-want +got):\n%s", diff)
			}
		})
	}
}

// read parses a YAML stream of manifests.
func read(text []byte) ([]Object, error) {
	var objects []Object
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		var fields map[string]any
		if err := decoder.Decode(&fields); errors.Is(err, io.EOF) {
			return objects, nil
		} else if err != nil {
			return nil, err
		}
		if len(fields) > 0 {
			objects = append(objects, Object{Unstructured: &unstructured.Unstructured{Object: fields}})
		}
	}
}

// outOf formats the converted objects, the pools first.
func outOf(t *testing.T, result Result) []string {
	t.Helper()
	var lines []string
	add := func(o any) {
		text, err := yaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		var fields map[string]any
		if err := yaml.Unmarshal(text, &fields); err != nil {
			t.Fatal(err)
		}
		u := unstructured.Unstructured{Object: fields}
		spec, err := yaml.Marshal(fields["spec"])
		if err != nil {
			t.Fatal(err)
		}
		compact, err := yaml.YAMLToJSON(spec)
		if err != nil {
			t.Fatal(err)
		}
		line := strings.TrimPrefix(u.GetNamespace()+"/"+u.GetName(), "/") + " " + string(compact)
		if u.GetLabels() != nil {
			line += fmt.Sprint(" labels ", u.GetLabels())
		}
		if u.GetAnnotations() != nil {
			line += fmt.Sprint(" annotations ", u.GetAnnotations())
		}
		lines = append(lines, line)
	}
	for _, p := range result.Pools {
		add(p)
	}
	for _, r := range result.Restarts {
		add(r)
	}
	return lines
}
