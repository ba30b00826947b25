// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package soundness

import "strings"

// belongings lists pairs of operators, one with a bug and one without. The bugs concern the
// ownership and deletion of objects.
var belongings = []Pair{
	{
		Name: "finalizer-memory", Mistake: "takes its finalizer only from what the process itself gave it to",
		Oracle: "other state", Says: "things.example.com default/a: it is there, and should not be",
		Steps: made + deleted, Faults: []string{"CrashBefore at step 2, update things", "ServerError at step 2"},
	},
	{
		Name: "ignores-error", Mistake: "takes its finalizer though what it had to remove is still there",
		Oracle: "other state", Says: "configmaps default/a: it is there, and should not be",
		Steps: made + deleted, Faults: []string{"ServerError at step 2, delete configmaps", "CrashBefore at step 2, delete configmaps"},
	},
	{
		Name: "owner-later", Mistake: "makes an object, and then says to whom it belongs",
		Oracle: "other state", Says: "ownerReferences",
		Steps: made, Faults: []string{"CrashAfter at step 1, create configmaps", "LoseAnswer at step 1, create configmaps"},
	},
	{
		Name: "by-name", Mistake: "removes what belongs to another object of the same name by now",
		Oracle: "other counts", Says: "configmaps default/a",
		Steps:  made + deleted + strings.Replace(made, "a thing is made", "it is made again", 1),
		Faults: []string{"StaleStart at step 4, as of deleting things", "Restart at step 4"}, Env: listed,
	},
	{
		Name: "slow-delete", Mistake: "takes its finalizer, and then cleans up",
		Oracle: "other state", Says: "configmaps default/a: it is there, and should not be",
		Steps: made + deleted, Faults: []string{"CrashAfter at step 2, update things", "CrashBefore at step 2, delete configmaps"},
	},
	{
		Name: "takes-pod", Mistake: "takes a pod from its ReplicaSet, in place of having that let it go",
		Oracle: "invariant broken", Says: "was taken from ReplicaSet web",
		Steps: `
- name: there is a ReplicaSet
  apply: |
    apiVersion: apps/v1
    kind: ReplicaSet
    metadata: {name: web, namespace: default}
    spec:
      replicas: 1
      selector: {matchLabels: {app: web}}
      template: {metadata: {labels: {app: web}}, spec: {containers: [{name: a, image: a}]}}
` + made, Faults: []string{"ServerError at step 2, update"}, Undisturbed: true,
	},
	{
		Name: "wanted-claims", Mistake: "removes the claim of a replica that is wanted again by now",
		Oracle: "invariant broken", Says: "is deleted, though StatefulSet a wants it",
		Steps: `
- name: there is a StatefulSet
  apply: |
    apiVersion: apps/v1
    kind: StatefulSet
    metadata: {name: a, namespace: default}
    spec:
      replicas: 1
      serviceName: a
      podManagementPolicy: Parallel
      selector: {matchLabels: {app: a}}
      template:
        metadata: {labels: {app: a}}
        spec: {terminationGracePeriodSeconds: 0, containers: [{name: a, image: a, volumeMounts: [{name: data, mountPath: /data}]}]}
      volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]
- name: it is scaled up
  run: kubectl scale statefulset a --replicas=2
`, Faults: []string{"Freeze at step 2, statefulsets", "StaleStart at step 2, statefulsets.apps, as of step 2"}, Env: listed,
	},
	{
		Name: "surges", Mistake: "a controller of Deployments that goes on though it could not scale down",
		Oracle: "invariant broken", Says: "has ReplicaSets for more pods than the 2 replicas and surge",
		Steps: `
- name: there is a Deployment
  apply: |
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: web, namespace: default}
    spec:
      replicas: 2
      strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 2}}
      selector: {matchLabels: {app: web}}
      template: {metadata: {labels: {app: web, version: one}}, spec: {containers: [{name: a, image: a}]}}
- name: it is rolled out
  patch: {resource: deployments.apps, namespace: default, name: web, merge: {spec: {template: {metadata: {labels: {version: two}}}}}}
withoutControllers: [deployment-controller]
`, Faults: []string{"ServerError at step 2, patch replicasets", "CrashBefore at step 2, patch replicasets"},
	},
}
