// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
)

// rows lists the operators, and of each the known bugs.
var rows = []row{
	{
		name: "replicaset-false", workload: "replicaset.yaml", command: controllerOf("ReplicaSet", false),
		known: []mistake{{name: "kubernetes#129795: more pods than wanted", says: []string{"has more pods than the 5 replicas"}}},
	},
	{name: "replicaset-true", workload: "replicaset.yaml", command: controllerOf("ReplicaSet", true)},
	{
		name: "daemonset-false", workload: "daemonset.yaml", command: controllerOf("DaemonSet", false),
		known: []mistake{{name: "kubernetes#134937: two pods on a node", says: []string{"a node has one pod of the DaemonSet does not hold"}}},
	},
	{name: "daemonset-true", workload: "daemonset.yaml", command: controllerOf("DaemonSet", true)},
	{
		name: "job-false", workload: "job.yaml", command: controllerOf("Job", false),
		known: []mistake{{name: "KEP-5647: more pods than the parallelism", says: []string{"the Job has three active pods at most does not hold"}}},
	},
	{name: "job-true", workload: "job.yaml", command: controllerOf("Job", true)},
	{name: "statefulset-false", workload: "statefulset.yaml", command: controllerOf("StatefulSet", false)},
	{name: "statefulset-true", workload: "statefulset.yaml", command: controllerOf("StatefulSet", true)},
	{
		name: "kuberay-1.2.2", workload: "kuberay.yaml", module: kuberay, version: "v1.2.2", crds: "config/crd/bases", command: kuberayCommand,
		known: []mistake{{name: "#715: more workers than wanted", says: []string{"there are three workers at most does not hold"}}},
	},
	{name: "kuberay-1.3.0", workload: "kuberay.yaml", module: kuberay, version: "v1.3.0", crds: "config/crd/bases", command: kuberayCommand},
	{
		name: "rabbitmq-1.6.0", workload: "rabbitmq.yaml", module: rabbitmq, version: "v1.6.0", crds: "config/crd/bases", command: rabbitmqCommand("--metrics-addr"),
		known: []mistake{
			{name: "#782: a claim never grows", says: []string{"persistentvolumeclaims default/persistence-hare-server", "requests.storage is 1Gi, not 2Gi"}},
			{name: "#653: a resized StatefulSet is deleted again", fault: "StaleStart", asOf: "deleting statefulsets.apps", says: []string{"statefulsets.apps default/hare-server: deleted"}},
			{name: "#648: a live StatefulSet is deleted", fault: "StaleStart", asOf: "deleting rabbitmqclusters.rabbitmq.com", says: []string{"statefulsets.apps default/hare-server: deleted"}},
			scaleDown,
		},
	},
	{
		// Of the bugs of version 1.6.0, only the scale-down is known in this version.
		name: "rabbitmq-1.10.0", workload: "rabbitmq.yaml", module: rabbitmq, version: "v1.10.0", crds: "config/crd/bases", command: rabbitmqCommand("--metrics-bind-address"),
		known: []mistake{scaleDown},
	},
	{
		name: "cert-manager-1.19.2", workload: "cert-manager.yaml", module: certManager, version: "v1.19.2", crds: "deploy/crds", main: certManagerMain, command: certManagerCommand,
		known: []mistake{{name: "cert-manager#8579: two next private keys", fault: "Freeze", says: []string{"a Certificate has one next private key does not hold"}}},
	},
	{name: "cert-manager-1.21.2", workload: "cert-manager.yaml", module: certManager, version: "v1.21.2", crds: "deploy/crds", main: certManagerMain, command: certManagerCommand},
	{
		name: "cluster-api-1.13.2", workload: "cluster-api.yaml", module: "sigs.k8s.io/cluster-api", version: "v1.13.2", crds: "config/default",
		command: []string{operator, "--webhook-port=9443"},
		known:   []mistake{{name: "cluster-api#13649: several MachineSets of one template", says: []string{"the MachineDeployment has one MachineSet does not hold"}}},
	},
	{
		name: "jobset-0.8.2", workload: "jobset.yaml", module: jobset, version: "v0.8.2", crds: "config/default", command: jobsetCommand,
		known: []mistake{{name: "jobset#1021: a follower is placed by a leader that is gone", says: []string{"jobs.batch default/kelp-fronds-0: status.ready is 1, not 2"}}},
	},
	{
		name: "zookeeper-0.2.15", workload: "zookeeper.yaml", application: "zookeeper", module: "github.com/pravega/zookeeper-operator", version: "v0.2.15", crds: "config/crd/bases",
		command: []string{"env", "WATCH_NAMESPACE=default", operator, "-metrics-bind-address=127.0.0.1:0"},
		known:   []mistake{{name: "zookeeper-operator#506: never ready, as it makes a node in ZooKeeper again", says: []string{"a cluster is made: not after"}}},
	},
	{
		name: "zookeeper-edits-0.2.15", workload: "zookeeper.yaml", object: "zookeeper-object.yaml", flags: []string{"--ready", "object.status.readyReplicas == 3"},
		application: "zookeeper", module: "github.com/pravega/zookeeper-operator", version: "v0.2.15", crds: "config/crd/bases",
		command: []string{"env", "WATCH_NAMESPACE=default", operator, "-metrics-bind-address=127.0.0.1:0"},
		known: []mistake{
			{
				name: "zookeeper-operator#547: a pod that cannot run is not replaced when the edit is taken back", edit: "spec.pod",
				says: []string{"statefulsets.apps default/otter: status.readyReplicas is 2, not 3"},
			},
			{
				name: "zookeeper-operator#540: the claims of the StatefulSet are not edited", edit: "spec.persistence",
				says: []string{"edited, statefulsets.apps default/otter: spec.volumeClaimTemplates"},
			},
		},
	},
	{
		name: "redis-1.2.4", workload: "redis.yaml", object: "redis-object.yaml", application: "redis",
		flags:  []string{"--ready", "objects['pods'].exists(p, has(p.metadata.labels) && 'redisfailovers-role' in p.metadata.labels && p.metadata.labels['redisfailovers-role'] == 'master')"},
		module: "github.com/spotahome/redis-operator", version: "v1.2.4",
		pkg: "cmd/redisoperator", crds: "manifests/databases.spotahome.com_redisfailovers.yaml", command: []string{operator, "-listen-address=127.0.0.1:9710"},
		known: []mistake{{
			name: "spotahome/redis-operator#552: a pod that cannot be placed is not replaced when the edit is taken back",
			says: []string{"statefulsets.apps default/rfr-otter: status.readyReplicas is 2, not 3"},
		}},
	},
	{
		name: "tekton-0.18.1", workload: "tekton.yaml", module: tekton, version: "v0.18.1", replace: vbom, pkg: "cmd/controller", crds: tektonManifests,
		command: slices.Concat(tektonCommand, []string{"-creds-image=i", "-build-gcs-fetcher-image=i"}),
		known:   []mistake{{name: "tektoncd/pipeline#3126: two TaskRuns for one task", says: []string{"a task has one TaskRun does not hold"}}},
	},
	{
		name: "argo-rollouts-1.10.1", workload: "argo-rollouts.yaml", module: "github.com/argoproj/argo-rollouts", version: "v1.10.1", pkg: "cmd/rollouts-controller", crds: "manifests/crds",
		command: []string{operator, "--kubeconfig=$KUBECONFIG", "--leader-elect=false", "--metricsPort=-1", "--healthzPort=-1"},
		known:   []mistake{{name: "no issue: a Service keeps the selector of a Rollout that is gone", says: []string{"services default/heron-", "rollouts-pod-template-hash"}}},
	},
	{
		name: "rabbitmq-2.9.0", workload: "rabbitmq.yaml", module: rabbitmq + "/v2", version: "v2.9.0", crds: "config/crd/bases", command: rabbitmqCommand("--metrics-bind-address"),
		known: []mistake{scaleDown},
	},
}

var scaleDown = mistake{name: "#758: a scale-down that is refused is done", says: []string{"statefulsets.apps default/hare-server: spec.replicas is 2, not 3"}}

const kuberay = "github.com/ray-project/kuberay/ray-operator"

// operator is the path of a compiled operator, relative to the directory of its row.
const operator = "./operator"

var kuberayCommand = []string{operator, "--enable-leader-election=false", "--metrics-addr=127.0.0.1:0", "--health-probe-bind-address=127.0.0.1:0"}

const (
	certManager = "github.com/cert-manager/cert-manager"
	// The main package of cert-manager is in a module of its own, which module proxies do not serve.
	certManagerMain = "../hack/cert-manager/main.go"
)

var certManagerCommand = []string{operator, "-kubeconfig=$KUBECONFIG"}

const jobset = "sigs.k8s.io/jobset"

// jobsetCommand runs JobSet's operator without its own certificates: those of its webhooks are made by
// the sandbox.
var jobsetCommand = []string{
	"sh", "-c", `echo '{"apiVersion": "config.jobset.x-k8s.io/v1alpha1", "kind": "Configuration", "internalCertManagement": {"enable": false}}' > config.yaml
exec ` + operator + ` --config=config.yaml --leader-elect=false --metrics-bind-address=0 --health-probe-bind-address=127.0.0.1:0`,
}

const (
	tekton = "github.com/tektoncd/pipeline"
	// vbom names a dependency by the name under which it is served today.
	vbom = "vbom.ml/util=github.com/fvbommel/util@v0.0.0-20180919145318-efcd4e0f9787"
	// tektonManifests are without the roles, which are of a version that is not served any more.
	tektonManifests = "config/100-namespace* config/300-* config/config-*"
)

var tektonCommand = []string{
	"env", "SYSTEM_NAMESPACE=tekton-pipelines", "CONFIG_FEATURE_FLAGS_NAME=feature-flags", "METRICS_DOMAIN=tekton.dev/pipeline", operator,
	"-kubeconfig-writer-image=i", "-git-image=i", "-entrypoint-image=i", "-nop-image=i", "-imagedigest-exporter-image=i", "-pr-image=i", "-gsutil-image=i", "-shell-image=i",
}

const rabbitmq = "github.com/rabbitmq/cluster-operator"

func rabbitmqCommand(metricsFlag string) []string {
	return []string{"env", "KUBE_CONFIG=$KUBECONFIG", "OPERATOR_NAMESPACE=default", operator, metricsFlag + "=127.0.0.1:0"}
}

// controllerOf returns the command that runs Kubernetes' own controller of a kind. consistent is the
// value of the feature gate with which the controller waits until its cache shows its own writes.
func controllerOf(kind string, consistent bool) []string {
	return []string{
		"kube-controller-manager", "--kubeconfig=$KUBECONFIG", "--controllers=" + strings.ToLower(kind) + "-controller",
		fmt.Sprintf("--feature-gates=StaleControllerConsistency%s=%t", kind, consistent), "--leader-elect=false", "--secure-port=0",
	}
}
