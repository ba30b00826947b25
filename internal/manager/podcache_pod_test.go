// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

// podType is the apiVersion and kind in a sent pod.
var podType = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}

// population describes a set of pods for the memory measurement. If alike is true, every thirty
// pods belong to a common Deployment, and differ only in name, addresses, node and times.
// Otherwise, each pod belongs to a different Deployment and has unique requests.
type population struct {
	count int
	alike bool
}

// pod returns the i-th pod. It is Ready and was created by a restart. It has two containers and an
// init container, with environment variables, volumes and probes, and the fields that the API
// server, the scheduler and the kubelet set. Each node has thirty pods.
func (p population) pod(i int) *corev1.Pod {
	app, cpu := i, fmt.Sprintf("%dm", 100+i)
	if p.alike {
		app, cpu = i/30, "500m"
	}
	uid := func(kind, n int) types.UID { return types.UID(fmt.Sprintf("%08x-5a1c-4d0e-9b7f-%012x", kind, n)) }
	created := time.Date(2026, 6, 10, 3, 0, i%60, 0, time.UTC)
	after := func(seconds int) metav1.Time {
		return metav1.NewTime(created.Add(time.Duration(seconds) * time.Second))
	}
	containers := []corev1.Container{
		typicalContainer("app", fmt.Sprintf("registry.example.com/shop/service-%d:v1.%d.0", app%200, app%50), 24, cpu, "512Mi"),
		typicalContainer("proxy", "registry.example.com/mesh/proxy:v1.20.3", 16, "100m", "128Mi"),
	}
	inits := []corev1.Container{typicalContainer("migrate", "registry.example.com/shop/migrate:v3", 6, "100m", "64Mi")}
	node := fmt.Sprintf("node-%05d.eu-central.example.com", i%(p.count/30))
	pod := &corev1.Pod{
		TypeMeta: podType,
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("service-%d-6c8f9d7b5-%05x", app, i), GenerateName: fmt.Sprintf("service-%d-6c8f9d7b5-", app),
			Namespace: fmt.Sprintf("team-%d", app%100), UID: uid(1, i), ResourceVersion: fmt.Sprint(100_000_000 + i), CreationTimestamp: after(0),
			Labels: map[string]string{
				"app.kubernetes.io/name": fmt.Sprintf("service-%d", app), "app.kubernetes.io/instance": fmt.Sprintf("service-%d", app),
				"app.kubernetes.io/version": "v1.0.0", "app.kubernetes.io/managed-by": "Helm", "pod-template-hash": "6c8f9d7b5", "team": fmt.Sprintf("team-%d", app%100),
			},
			Annotations: map[string]string{
				tidekeeperv1.RestartedAtAnnotation: "2026-06-10T03:00:00Z",
				"checksum/config":                  strings.Repeat("0123456789abcdef", 4), "prometheus.io/scrape": "true", "prometheus.io/port": "9090",
				"sidecar.example.com/status": `{"version":"1.20.3","initContainers":[],"containers":["proxy"],"volumes":["workload-socket","proxy-envoy"]}`,
			},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "ReplicaSet", Name: fmt.Sprintf("service-%d-6c8f9d7b5", app), UID: uid(2, app), Controller: new(true), BlockOwnerDeletion: new(true),
			}},
		},
		Spec: corev1.PodSpec{
			NodeName: node, Containers: containers, InitContainers: inits,
			RestartPolicy: corev1.RestartPolicyAlways, TerminationGracePeriodSeconds: new(int64(30)), DNSPolicy: corev1.DNSClusterFirst,
			ServiceAccountName: "default", DeprecatedServiceAccount: "default", SchedulerName: "default-scheduler",
			SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: new(true), FSGroup: new(int64(1000))},
			Priority:        new(int32(0)), EnableServiceLinks: new(true), PreemptionPolicy: new(corev1.PreemptLowerPriority),
			Tolerations: []corev1.Toleration{
				{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300))},
				{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300))},
			},
			Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{
				Weight: 100, PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{
					MatchLabels: map[string]string{"app.kubernetes.io/name": fmt.Sprintf("service-%d", app)},
				}},
			}}}},
			Volumes: []corev1.Volume{
				{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "config"}, DefaultMode: new(int32(420))}}},
				{Name: "secrets", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "secrets", DefaultMode: new(int32(420))}}},
				{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
				{Name: "kube-api-access-x7k2p", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{DefaultMode: new(int32(420)), Sources: []corev1.VolumeProjection{
					{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{ExpirationSeconds: new(int64(3607)), Path: "token"}},
					{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"}, Items: []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}}}},
					{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"}}}}},
				}}}},
			},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, QOSClass: corev1.PodQOSBurstable, StartTime: new(after(1)),
			HostIP: "10.0.0.1", HostIPs: []corev1.HostIP{{IP: "10.0.0.1"}}, PodIP: fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255),
			PodIPs: []corev1.PodIP{{IP: fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255)}},
		},
	}
	up := 6 + i*i%97 // seconds until the pod is ready
	for _, c := range []struct {
		kind  corev1.PodConditionType
		after int
	}{{corev1.PodReadyToStartContainers, 2}, {corev1.PodInitialized, 4}, {corev1.PodReady, up}, {corev1.ContainersReady, up}, {corev1.PodScheduled, 1}} {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: c.kind, Status: corev1.ConditionTrue, LastTransitionTime: after(c.after)})
	}
	for _, c := range containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, typicalStatus(&c, i, corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: after(5)}}))
	}
	for _, c := range inits {
		pod.Status.InitContainerStatuses = append(pod.Status.InitContainerStatuses, typicalStatus(&c, i, corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			Reason: "Completed", StartedAt: after(2), FinishedAt: after(4), ContainerID: typicalID(i),
		}}))
	}
	pod.ManagedFields = typicalManagers(pod, after(0), after(up))
	return pod
}

func typicalContainer(name, image string, variables int, cpu, memory string) corev1.Container {
	c := corev1.Container{
		Name: name, Image: image, ImagePullPolicy: corev1.PullIfNotPresent,
		Args: []string{"serve", "--listen=:8080", "--log-format=json"}, Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}},
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)},
			Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory)},
		},
		VolumeMounts: []corev1.VolumeMount{
			{Name: "config", MountPath: "/etc/service", ReadOnly: true}, {Name: "secrets", MountPath: "/etc/secrets", ReadOnly: true}, {Name: "tmp", MountPath: "/tmp"},
			{Name: "kube-api-access-x7k2p", MountPath: "/var/run/secrets/kubernetes.io/serviceaccount", ReadOnly: true},
		},
		ReadinessProbe: &corev1.Probe{
			ProbeHandler:   corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/ready", Port: intstr.FromString("http"), Scheme: corev1.URISchemeHTTP}},
			TimeoutSeconds: 1, PeriodSeconds: 10, SuccessThreshold: 1, FailureThreshold: 3,
		},
		TerminationMessagePath: "/dev/termination-log", TerminationMessagePolicy: corev1.TerminationMessageReadFile,
		SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
	}
	for n := range variables {
		v := corev1.EnvVar{Name: fmt.Sprintf("SERVICE_SETTING_%d", n), Value: fmt.Sprintf("https://backend-%d.example.com:8443/api", n)}
		if n%4 == 3 {
			v = corev1.EnvVar{Name: v.Name, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "secrets"}, Key: fmt.Sprintf("setting-%d", n)}}}
		}
		c.Env = append(c.Env, v)
	}
	return c
}

func typicalID(i int) string { return fmt.Sprintf("containerd://%064x", i) }

func typicalStatus(c *corev1.Container, i int, state corev1.ContainerState) corev1.ContainerStatus {
	return corev1.ContainerStatus{
		Name: c.Name, State: state, Ready: true, Started: new(state.Running != nil), Image: c.Image, ImageID: c.Image + "@sha256:" + strings.Repeat("0123456789abcdef", 4),
		ContainerID: typicalID(i), AllocatedResources: c.Resources.Requests, Resources: &c.Resources,
		VolumeMounts: []corev1.VolumeMountStatus{{Name: "config", MountPath: "/etc/service", ReadOnly: true}, {Name: "tmp", MountPath: "/tmp"}},
	}
}

// typicalManagers returns a pod's managed fields, with entries for the controller that created the
// pod and for the kubelet.
func typicalManagers(pod *corev1.Pod, created, ready metav1.Time) []metav1.ManagedFieldsEntry {
	var spec, status strings.Builder
	for _, c := range append(pod.Spec.Containers, pod.Spec.InitContainers...) {
		fmt.Fprintf(&spec, `,"k:{\"name\":%q}":{".":{},"f:args":{},"f:image":{},"f:imagePullPolicy":{},"f:name":{},"f:ports":{},"f:readinessProbe":{},"f:resources":{},"f:env":{".":{}`, c.Name)
		for _, v := range c.Env {
			fmt.Fprintf(&spec, `,"k:{\"name\":%q}":{".":{},"f:name":{},"f:value":{}}`, v.Name)
		}
		spec.WriteString(`},"f:volumeMounts":{".":{}`)
		for _, m := range c.VolumeMounts {
			fmt.Fprintf(&spec, `,"k:{\"mountPath\":%q}":{".":{},"f:mountPath":{},"f:name":{},"f:readOnly":{}}`, m.MountPath)
		}
		spec.WriteString(`}}`)
	}
	for _, c := range pod.Status.Conditions {
		fmt.Fprintf(&status, `,"k:{\"type\":%q}":{".":{},"f:lastProbeTime":{},"f:lastTransitionTime":{},"f:status":{},"f:type":{}}`, c.Type)
	}
	entry := func(manager, subresource, fields string, at metav1.Time) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{
			Manager: manager, Subresource: subresource, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", Time: &at,
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
		}
	}
	return []metav1.ManagedFieldsEntry{
		entry("kube-controller-manager", "", `{"f:metadata":{"f:annotations":{},"f:generateName":{},"f:labels":{},"f:ownerReferences":{}},"f:spec":{"f:containers":{`+strings.TrimPrefix(spec.String(), ",")+`},"f:volumes":{}}}`, created),
		entry("kubelet", "status", `{"f:status":{"f:conditions":{`+strings.TrimPrefix(status.String(), ",")+`},"f:containerStatuses":{},"f:hostIP":{},"f:phase":{},"f:podIP":{},"f:startTime":{}}}`, ready),
	}
}
