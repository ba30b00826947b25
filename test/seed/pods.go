// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package seed

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// owner describes the owner of consecutively numbered pods.
type owner struct {
	kind, name string
	number     int // among all owners
	first      int // index of the owner's first pod
	pods       int
}

// StatefulSets returns the names of the StatefulSets whose pods all exist in a cluster with the
// given numbers of pods and nodes.
func StatefulSets(pods, nodes int) []string {
	var names []string
	for i := range pods {
		if o := ownerOf(i, nodes); o.kind == "StatefulSet" && i == o.first && i+o.pods <= pods {
			names = append(names, o.name)
		}
	}
	return names
}

// ownerOf returns the owner of the ith pod. A cluster has a DaemonSet, large and small ReplicaSets,
// StatefulSets and Jobs. Of the pods outside the DaemonSet, one in five is in a ReplicaSet of one
// to three pods, one in ten is in a StatefulSet of three pods, one in ten is in a Job of its own,
// and the others are in ReplicaSets of 30 pods.
func ownerOf(i, nodes int) owner {
	if i < nodes {
		return owner{"DaemonSet", "node-agent", 0, 0, nodes}
	}
	const block = 30
	b, in := (i-nodes)/block, (i-nodes)%block
	first := nodes + b*block
	// The names are distinct because a block of 30 pods has at most one large owner, and small
	// owners get a suffix.
	name := fmt.Sprintf("service-%05d", b)
	switch b % 10 {
	case 0, 1:
		trio, place := in/6, in%6 // Six pods make three ReplicaSets: 1 + 2 + 3.
		size, start := 1, 0
		switch {
		case place >= 3:
			size, start = 3, 3
		case place >= 1:
			size, start = 2, 1
		}
		at := first + 6*trio + start
		return owner{"ReplicaSet", fmt.Sprintf("%s-%d%d-7c9d8f6b5d", name, trio, size), at, at, size}
	case 2:
		at := first + in/3*3
		return owner{"StatefulSet", fmt.Sprintf("%s-%d", name, in/3), at, at, 3}
	case 3:
		return owner{"Job", fmt.Sprintf("%s-%02d", name, in), i, i, 1}
	default:
		return owner{"ReplicaSet", name + "-7c9d8f6b5d", first, first, block}
	}
}

func (o owner) uid() types.UID { return uid(2, o.number) }

// podName returns the name of the ith pod, in the format that its owner's controller uses.
func podName(i, nodes int) string {
	o := ownerOf(i, nodes)
	if o.kind == "StatefulSet" {
		return fmt.Sprintf("%s-%d", o.name, i-o.first)
	}
	return fmt.Sprintf("%s-%05x", o.name, i*7919%0xfffff)
}

// NodeName returns the name of the ith node.
func NodeName(i int) string { return fmt.Sprintf("node-%d", i+1) }

func uid(kind, i int) types.UID {
	return types.UID(fmt.Sprintf("%08x-0000-4000-8000-%012x", kind, i))
}

// appRequest returns the CPU request of the ith pod's first container, in thousandths of a core.
func appRequest(i int) int64 { return int64(50 * (1 + i/30%7)) }

const proxyRequest = 10

// RequestOf returns the sum of the CPU requests of the ith pod's containers, in thousandths of a
// core.
func RequestOf(i int) int64 { return appRequest(i) + proxyRequest }

// podTimes holds the times of a pod's start-up stages, and the restart count of its first
// container. The values vary as in a real cluster, but are the same in each run.
type podTimes struct {
	created, scheduled, initialized, started, ready metav1.Time
	restarts                                        int32
}

func podTimesOf(i int, now time.Time) podTimes {
	random := rand.New(rand.NewPCG(uint64(i), 7919))
	at := now.Add(-time.Hour - time.Duration(random.IntN(30*24*3600))*time.Second).Truncate(time.Second)
	after := func(most int) metav1.Time {
		at = at.Add(time.Duration(random.IntN(most+1)) * time.Second)
		return metav1.NewTime(at)
	}
	l := podTimes{created: after(0), scheduled: after(2), initialized: after(20), started: after(60), ready: after(90)}
	if random.IntN(10) == 0 {
		l.restarts = 1 + random.Int32N(5)
	}
	return l
}

// account is the mount of a pod's service account token.
var account = corev1.VolumeMount{Name: "kube-api-access-x7k2p", ReadOnly: true, MountPath: "/var/run/secrets/kubernetes.io/serviceaccount"}

// containerOf returns a container that requests the given CPU, in thousandths of a core.
func containerOf(name string, cpu int64) corev1.Container {
	return corev1.Container{
		Name: name, Image: "registry.example.com/shop/" + name + ":v1.27.3", ImagePullPolicy: corev1.PullIfNotPresent,
		Env:                      []corev1.EnvVar{{Name: "LOG_LEVEL", Value: "info"}, {Name: "LISTEN", Value: ":8080"}, {Name: "DATABASE", Value: "postgres://db.shop.svc:5432/shop"}},
		Ports:                    []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}},
		VolumeMounts:             []corev1.VolumeMount{account},
		TerminationMessagePath:   "/dev/termination-log",
		TerminationMessagePolicy: corev1.TerminationMessageReadFile,
		ReadinessProbe: &corev1.Probe{
			ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Scheme: corev1.URISchemeHTTP}},
			PeriodSeconds: 10, TimeoutSeconds: 1, SuccessThreshold: 1, FailureThreshold: 3,
		},
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(cpu, resource.DecimalSI), corev1.ResourceMemory: resource.MustParse("64Mi")},
			Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("128Mi")},
		},
	}
}

// statusesOf returns the statuses of the ith pod's running containers.
func statusesOf(i int, containers []corev1.Container, l podTimes) []corev1.ContainerStatus {
	var statuses []corev1.ContainerStatus
	for _, c := range containers {
		statuses = append(statuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, Ready: true, Started: new(true),
			ImageID:            "registry.example.com/shop/" + c.Name + "@sha256:0f5a2f1e4a6d0c7b8e9d3c2b1a0f9e8d7c6b5a4f3e2d1c0b9a8f7e6d5c4b3a2f",
			ContainerID:        fmt.Sprintf("containerd://%064x", i),
			State:              corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: l.started}},
			AllocatedResources: c.Resources.Requests, Resources: &c.Resources,
		})
	}
	if l.restarts > 0 {
		first := &statuses[0]
		reason, code := "Error", int32(1)
		if l.restarts%2 == 0 {
			reason, code = "OOMKilled", 137
		}
		again := metav1.NewTime(l.started.Add(time.Duration(i%3000) * time.Second))
		first.RestartCount = l.restarts
		first.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{
			ExitCode: code, Reason: reason, StartedAt: l.started, FinishedAt: again, ContainerID: first.ContainerID,
		}
		first.State.Running = &corev1.ContainerStateRunning{StartedAt: again}
	}
	return statuses
}

// PodOf returns the ith pod as in a real cluster: with two containers, bound and ready, with the
// fields that admission, scheduler and kubelet set, and with managedFields. Its stored size is
// about 6 KiB.
func PodOf(i, nodes int, now time.Time) *corev1.Pod {
	l, o := podTimesOf(i, now), ownerOf(i, nodes)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: podName(i, nodes), Namespace: metav1.NamespaceDefault, UID: uid(1, i), Generation: 1, CreationTimestamp: l.created, Labels: labelsOf(o),
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: o.kind, Name: o.name, UID: o.uid(), Controller: new(true), BlockOwnerDeletion: new(true),
			}},
		},
		Spec: corev1.PodSpec{
			NodeName:      NodeName(i % nodes),
			Containers:    []corev1.Container{containerOf("app", appRequest(i)), containerOf("proxy", proxyRequest)},
			RestartPolicy: corev1.RestartPolicyAlways, DNSPolicy: corev1.DNSClusterFirst, SchedulerName: corev1.DefaultSchedulerName,
			ServiceAccountName: "default", DeprecatedServiceAccount: "default", EnableServiceLinks: new(true),
			TerminationGracePeriodSeconds: new(int64(30)), Priority: new(int32), SecurityContext: &corev1.PodSecurityContext{},
			PreemptionPolicy: new(corev1.PreemptLowerPriority),
			Tolerations: []corev1.Toleration{
				{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300))},
				{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300))},
			},
			Volumes: []corev1.Volume{{Name: account.Name, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
				DefaultMode: new(int32(420)), Sources: []corev1.VolumeProjection{
					{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{ExpirationSeconds: new(int64(3607)), Path: "token"}},
					{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"}, Items: []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}}}},
				},
			}}}},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, QOSClass: corev1.PodQOSBurstable, StartTime: &l.scheduled, HostIP: "10.0.0.1", HostIPs: []corev1.HostIP{{IP: "10.0.0.1"}},
			PodIP: fmt.Sprintf("10.%d.%d.%d", 1+i>>16, i>>8&255, i&255), PodIPs: []corev1.PodIP{{IP: fmt.Sprintf("10.%d.%d.%d", 1+i>>16, i>>8&255, i&255)}},
		},
	}
	switch o.kind {
	case "Job":
		pod.OwnerReferences[0].APIVersion = "batch/v1"
		pod.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
		// Without this annotation, the pod would soon complete in the sandbox.
		pod.Annotations = map[string]string{"sandbox.tidekeeper.dev/completed-after": "240h"}
	case "StatefulSet":
		pod.Labels["statefulset.kubernetes.io/pod-name"], pod.Labels["apps.kubernetes.io/pod-index"] = pod.Name, fmt.Sprint(i-o.first)
		pod.Spec.Hostname = pod.Name
	}
	for _, condition := range []struct {
		kind corev1.PodConditionType
		at   metav1.Time
	}{
		{corev1.PodReadyToStartContainers, l.initialized}, {corev1.PodInitialized, l.initialized}, {corev1.PodReady, l.ready},
		{corev1.ContainersReady, l.ready}, {corev1.PodScheduled, l.scheduled},
	} {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: condition.kind, Status: corev1.ConditionTrue, ObservedGeneration: 1, LastTransitionTime: condition.at})
	}
	pod.Status.ContainerStatuses = statusesOf(i, pod.Spec.Containers, l)
	// All pods have the same set of fields, so they share the managedFields.
	fieldsOnce.Do(func() {
		fieldsOfPods = []metav1.ManagedFieldsEntry{
			managed("kube-controller-manager", "", l.created, map[string]any{"metadata": pod.ObjectMeta, "spec": pod.Spec}),
			managed("kubelet", "status", l.ready, map[string]any{"status": pod.Status}),
		}
	})
	pod.ManagedFields = fieldsOfPods
	return pod
}

var (
	fieldsOnce   sync.Once
	fieldsOfPods []metav1.ManagedFieldsEntry
)

// managed returns a managedFields entry for a field manager that owns all of the given fields.
func managed(manager, subresource string, at metav1.Time, fields map[string]any) metav1.ManagedFieldsEntry {
	text, err := json.Marshal(fields)
	if err != nil {
		panic(err)
	}
	var tree any
	if err := json.Unmarshal(text, &tree); err != nil {
		panic(err)
	}
	if text, err = json.Marshal(fieldsOf(tree)); err != nil {
		panic(err)
	}
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", Time: &at, FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(string(text)), Subresource: subresource,
	}
}

// fieldsOf returns the field names of a value roughly in the FieldsV1 format of managedFields.
func fieldsOf(value any) map[string]any {
	fields := map[string]any{}
	switch v := value.(type) {
	case map[string]any:
		for name, field := range v {
			fields["f:"+name] = fieldsOf(field)
		}
	case []any:
		for _, item := range v {
			if named, ok := item.(map[string]any); ok {
				fields[fmt.Sprintf(`k:{"name":"%v"}`, named["name"])] = fieldsOf(item)
			}
		}
	}
	return fields
}

func labelsOf(o owner) map[string]string {
	labels := map[string]string{"app.kubernetes.io/name": o.name, "app.kubernetes.io/part-of": "shop"}
	if o.kind == "ReplicaSet" {
		labels["pod-template-hash"] = "7c9d8f6b5d"
	}
	return labels
}

// objectOf returns the API object of an owner, its key in etcd and its API version. The owner's
// controller has nothing to do, because all of its pods exist and none has to be replaced.
func objectOf(o owner, nodes int, now time.Time) (key string, object runtime.Object, version schema.GroupVersion) {
	pod := PodOf(o.first, nodes, now)
	labels := labelsOf(o)
	meta := metav1.ObjectMeta{
		Name: o.name, Namespace: metav1.NamespaceDefault, UID: o.uid(), Generation: 1, CreationTimestamp: pod.CreationTimestamp, Labels: labels,
	}
	selector := &metav1.LabelSelector{MatchLabels: labels}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
		Containers: pod.Spec.Containers, RestartPolicy: pod.Spec.RestartPolicy, DNSPolicy: corev1.DNSClusterFirst,
		SchedulerName: corev1.DefaultSchedulerName, TerminationGracePeriodSeconds: new(int64(30)), SecurityContext: &corev1.PodSecurityContext{},
	}}
	n := int32(o.pods)
	switch o.kind {
	case "DaemonSet":
		return "/registry/daemonsets/default/" + o.name, &appsv1.DaemonSet{
			ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{
				Selector: selector, Template: template, RevisionHistoryLimit: new(int32(10)),
				UpdateStrategy: appsv1.DaemonSetUpdateStrategy{Type: appsv1.OnDeleteDaemonSetStrategyType},
			},
			Status: appsv1.DaemonSetStatus{CurrentNumberScheduled: n, DesiredNumberScheduled: n, NumberReady: n, NumberAvailable: n, UpdatedNumberScheduled: n, ObservedGeneration: 1},
		}, appsv1.SchemeGroupVersion
	case "StatefulSet":
		return "/registry/statefulsets/default/" + o.name, &appsv1.StatefulSet{
			ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{
				Replicas: &n, Selector: selector, Template: template, RevisionHistoryLimit: new(int32(10)), PodManagementPolicy: appsv1.ParallelPodManagement,
				UpdateStrategy: appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType},
			},
			Status: appsv1.StatefulSetStatus{Replicas: n, ReadyReplicas: n, AvailableReplicas: n, CurrentReplicas: n, UpdatedReplicas: n, ObservedGeneration: 1},
		}, appsv1.SchemeGroupVersion
	case "Job":
		return "/registry/jobs/default/" + o.name, &batchv1.Job{
			// ManagedBy disables the Job controller, which would otherwise add its finalizer to
			// each pod.
			ObjectMeta: meta, Spec: batchv1.JobSpec{
				Parallelism: new(int32(1)), Completions: new(int32(1)), BackoffLimit: new(int32(6)), Selector: selector, Template: template,
				Suspend: new(bool), CompletionMode: new(batchv1.NonIndexedCompletion), ManagedBy: new("scale.example.com/nobody"),
			},
			Status: batchv1.JobStatus{Active: 1, Ready: new(int32(1)), StartTime: &pod.CreationTimestamp},
		}, batchv1.SchemeGroupVersion
	default:
		return "/registry/replicasets/default/" + o.name, &appsv1.ReplicaSet{
			ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Replicas: &n, Selector: selector, Template: template},
			Status: appsv1.ReplicaSetStatus{Replicas: n, FullyLabeledReplicas: n, ReadyReplicas: n, AvailableReplicas: n, ObservedGeneration: 1},
		}, appsv1.SchemeGroupVersion
	}
}
