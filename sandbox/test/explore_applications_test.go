// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"cmp"
	"fmt"
	"os"
	"strings"
	"testing"
)

// bakeryWorkload is the workload of the shop, whose operator asks a bakery in the cluster for prices.
// Its argument is the bakery's entry in "applications".
const bakeryWorkload = `
nodes: 1
applications: [%s]
steps:
- name: the bakery opens
  apply: |
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: bakery, namespace: default}
    spec:
      replicas: 2
      selector: {matchLabels: {app: bakery}}
      template:
        metadata: {labels: {app: bakery}}
        spec: {containers: [{name: bakery, image: bakery, ports: [{name: http, containerPort: 8080}]}]}
    ---
    apiVersion: v1
    kind: Service
    metadata: {name: bakery, namespace: default}
    spec: {selector: {app: bakery}, ports: [{port: 80, targetPort: http}]}
%s`

// closing has no pod of the bakery while another order is made.
const closing = `- name: the bakery closes
  run: |
    kubectl scale deployment bakery --replicas=0
    kubectl wait pods --selector=app=bakery --for=delete --timeout=60s
- name: another order is made
  apply: |
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: cake, namespace: default, labels: {shop: order}}
    data: {item: cake, state: new}
- name: the bakery opens again
  run: kubectl scale deployment bakery --replicas=1
  wait: {resource: configmaps, namespace: default, name: cake, for: 'object.data.state == "done"'}
`

// priced is an invariant of orders: a price comes from a bakery that is there.
const priced = `- name: a price has a bakery
  resource: configmaps
  rule: >-
    old == null || has(old.data.price) || !has(object.data.price) ||
      objects['pods'].exists(p, has(p.metadata.labels) && 'app' in p.metadata.labels && p.metadata.labels.app == 'bakery')
`

// TestExploreApplications checks that an operator reaches, by the name of their Service, pods on
// simulated nodes for which an application answers: a table of HTTP answers, and a program, which is
// another one in each run. A connection that the operator keeps open ends with its pod. With faults of
// the application, explore finds an operator that believes the application to remember, and one that
// waits for its answer without a limit.
func TestExploreApplications(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(shopWorkload)
	if err != nil {
		t.Fatal(err)
	}
	_, steps, _ := strings.Cut(string(text), "steps:\n")
	steps = strings.Replace(steps, `object.data.state == "done"`, `object.data.state == "done" && object.data.price == "3"`, 1)
	program := fmt.Sprintf("{pods: app=bakery, port: 8080, servicePort: 80, program: %s --sell}", shop(t))
	for _, tc := range []struct {
		name, application string
		more              string
		mistake, only     string
		code              int
		says              string
	}{
		{name: "a table", application: "{pods: app=bakery, port: 8080, servicePort: 80, http: [{path: /account, body: open}, {path: /price, body: '3'}]}", says: "Found: 0."},
		{name: "a bakery that closes", application: program, more: closing, says: "Found: 0."},
		{name: "a bakery that forgets", application: program, mistake: "opens-once", only: "LoseState at step 2, GET app=bakery:8080 /price #1", code: 2, says: "configmaps default/bread"},
		{name: "a bakery that stands still", application: program, mistake: "waits", only: "NoAnswer at step 2, GET app=bakery:8080 /price #1", code: 2, says: "configmaps default/bread"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := play(t,
				"explore", "--workload", workloadFile(t, fmt.Sprintf(bakeryWorkload, tc.application, strings.Replace(steps, "invariants:\n", tc.more+"invariants:\n"+priced, 1))), "--quiet", "1500ms", "--dir", t.TempDir(), "--jobs", "2",
				"--patience", "10s", "--hold", "3s", "--only", cmp.Or(tc.only, "CrashAfter at step 2, create secrets"), "--", shop(t), "--bakery", "http://bakery.default", "--mistake", tc.mistake,
			)
			if r.code != tc.code || !strings.Contains(r.stdout, tc.says) || strings.Contains(r.stderr, "warning") {
				t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
			}
		})
	}
}
