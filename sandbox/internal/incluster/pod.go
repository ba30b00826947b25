// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package incluster

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/kubectl/pkg/cmd/util/podcmd"
	deploymentutil "k8s.io/kubectl/pkg/util/deployment"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"tidekeeper.dev/tidekeeper/sandbox/internal/kubelet"
	"tidekeeper.dev/tidekeeper/sandbox/internal/namelock"
	"tidekeeper.dev/tidekeeper/sandbox/internal/node"
)

// DefaultCertDir returns the directory in which programs based on controller-runtime expect the
// serving certificate for webhooks.
func DefaultCertDir() string {
	return filepath.Join(os.TempDir(), "k8s-webhook-server", "serving-certs")
}

// podTimeout is the maximum time for a program's Pod to become ready.
const podTimeout = 30 * time.Second

// MakePod creates a Pod for a program that this process runs. It returns the Pod once it is ready,
// with the environment variables that its container declares. The Pod exists until this process
// exits. An error in the declared variables does not prevent the start, and is returned as a
// warning.
func MakePod(ctx context.Context, o Options) (pod *corev1.Pod, environment []string, warning, err error) {
	client, err := kubernetes.NewForConfig(o.Config)
	if err != nil {
		return nil, nil, nil, err
	}
	if pod, err = newPod(ctx, client, o); err != nil {
		return nil, nil, nil, err
	}
	// The Pod needs no cleanup, because the kubelet removes it after this process has exited.
	if pod, err = (podStarter{client: client, cleanups: &cleanups{}}).start(ctx, pod); err != nil {
		return nil, nil, nil, err
	}
	declared, warning := variables{client: client, pod: pod}.of(ctx, container(pod))
	return pod, append(assignments(declared), "HOSTNAME="+pod.Name), warning, nil
}

// container returns the container that the program replaces, which is kubectl's default container.
func container(pod *corev1.Pod) *corev1.Container {
	for i := range pod.Spec.Containers {
		if pod.Spec.Containers[i].Name == pod.Annotations[podcmd.DefaultContainerAnnotationName] {
			return &pod.Spec.Containers[i]
		}
	}
	return &pod.Spec.Containers[0]
}

// newPod returns the program's Pod. It does not create the Pod in the API server.
func newPod(ctx context.Context, client kubernetes.Interface, o Options) (*corev1.Pod, error) {
	var pod *corev1.Pod
	if o.From == "" {
		pod = standalonePod(o.Program[0], o.ServiceAccount)
	} else {
		deployment, err := findDeployment(ctx, client, o.From)
		if err != nil {
			return nil, err
		}
		pod = podOfDeployment(deployment)
		if pod.OwnerReferences, err = replicaSet(client, deployment); err != nil {
			return nil, err
		}
	}
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	if pod.Spec.NodeName, err = readyNode(nodes.Items); err != nil {
		return nil, err
	}
	asRunning(pod)
	return pod, nil
}

// podOfDeployment returns a Pod from a Deployment's template.
func podOfDeployment(deployment *appsv1.Deployment) *corev1.Pod {
	template := deployment.Spec.Template.DeepCopy()
	pod := &corev1.Pod{Spec: template.Spec}
	pod.Namespace, pod.GenerateName = deployment.Namespace, deployment.Name+"-"
	pod.Labels, pod.Annotations = template.Labels, template.Annotations
	pod.Spec.ServiceAccountName = cmp.Or(pod.Spec.ServiceAccountName, "default")
	return pod
}

// standalonePod returns a Pod for a program without a Deployment. If the name of the account is
// empty, the Pod names no ServiceAccount, and podStarter later creates one.
func standalonePod(program string, account types.NamespacedName) *corev1.Pod {
	name := podNameOf(program)
	pod := &corev1.Pod{}
	pod.Namespace, pod.GenerateName = cmp.Or(account.Namespace, metav1.NamespaceDefault), name+"-"
	pod.Spec.ServiceAccountName = account.Name
	pod.Spec.Containers = []corev1.Container{{
		Name: "program", Image: name,
		Env: []corev1.EnvVar{fieldVariable("POD_NAME", "metadata.name"), fieldVariable("POD_NAMESPACE", "metadata.namespace")},
		// Pods with this security context are admitted at every Pod Security level.
		SecurityContext: &corev1.SecurityContext{
			RunAsNonRoot: new(true), AllowPrivilegeEscalation: new(false),
			Capabilities:   &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
	}}
	return pod
}

func fieldVariable(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: path}}}
}

// asRunning makes the simulated kubelet report the Pod as ready as long as the Pod exists, because
// the program is actually running. It removes the annotations of the Pod template that control
// simulated containers.
func asRunning(pod *corev1.Pod) {
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	maps.DeleteFunc(pod.Annotations, func(key, _ string) bool { return strings.HasPrefix(key, kubelet.Prefix) })
	maps.Copy(pod.Annotations, kubelet.WithoutDelays())
	pod.Spec.InitContainers, pod.Spec.ReadinessGates, pod.Spec.SchedulingGates = nil, nil, nil
	// Tolerate all taints, so that the Pod is not evicted.
	pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
}

var notInName = regexp.MustCompile(`[^a-z0-9]+`)

// podNameOf returns a valid Pod name for a program.
func podNameOf(program string) string {
	name := notInName.ReplaceAllString(strings.ToLower(filepath.Base(program)), "-")
	return cmp.Or(strings.Trim(name[:min(len(name), 50)], "-"), "program")
}

// replicaSet returns an owner reference to a Deployment's current ReplicaSet, if it exists, so that
// the program can find its Deployment. The reference does not set "controller", because the
// ReplicaSet would then count the Pod as a replica.
func replicaSet(client kubernetes.Interface, deployment *appsv1.Deployment) ([]metav1.OwnerReference, error) {
	if deployment.UID == "" {
		return nil, nil
	}
	_, _, current, err := deploymentutil.GetAllReplicaSets(deployment, client.AppsV1())
	if err != nil {
		return nil, fmt.Errorf("find the ReplicaSet of Deployment %s: %w", deployment.Name, err)
	}
	if current == nil {
		return nil, nil
	}
	return []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: current.Name, UID: current.UID}}, nil
}

// readyNode returns the name of a node for the Pod. It does not use the scheduler, which would not
// schedule the Pod on a full node.
func readyNode(nodes []corev1.Node) (string, error) {
	for i := range nodes {
		if node.Schedulable(&nodes[i]) {
			return nodes[i].Name, nil
		}
	}
	return "", fmt.Errorf("the sandbox has no ready node for the program: add one with 'sandbox nodes add'")
}

// podStarter creates a program's Pod, and adds cleanups that delete it.
type podStarter struct {
	client   kubernetes.Interface
	cleanups *cleanups
}

// start creates the Pod and returns it once it is ready. If the Pod names no ServiceAccount, start
// creates an account.
func (s podStarter) start(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	account, err := s.ensureServiceAccount(ctx, pod)
	if err != nil {
		return nil, err
	}
	// This process holds the lock with this name until it exits. If it is killed and cannot delete
	// the Pod, the simulated kubelet finds the lock released and removes the Pod.
	name := "program-" + string(uuid.NewUUID())
	if _, err := namelock.Take(name); err != nil {
		return nil, fmt.Errorf("name the program: %w", err)
	}
	pod.Annotations[kubelet.ProgramAnnotation] = name
	created, err := s.client.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("create the Pod of the program: %w", err)
	}
	key := types.NamespacedName{Namespace: created.Namespace, Name: created.Name}
	s.cleanups.add(func(ctx context.Context) error {
		// Delete the Pod without a grace period, because the program has already exited.
		err := s.client.CoreV1().Pods(key.Namespace).Delete(ctx, key.Name, metav1.DeleteOptions{
			GracePeriodSeconds: new(int64(0)), Preconditions: &metav1.Preconditions{UID: &created.UID},
		})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("the Pod %s is left: %w", key, err)
		}
		return nil
	})
	if account != nil {
		// With this owner reference, the ServiceAccount is deleted with the Pod, even if this
		// process is killed.
		account.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: created.Name, UID: created.UID}}
		if _, err := s.client.CoreV1().ServiceAccounts(key.Namespace).Update(ctx, account, metav1.UpdateOptions{}); err != nil {
			return nil, fmt.Errorf("the ServiceAccount %s: %w", account.Name, err)
		}
	}
	return s.awaitReady(ctx, key)
}

// awaitReady returns the Pod once it is ready.
func (s podStarter) awaitReady(ctx context.Context, key types.NamespacedName) (pod *corev1.Pod, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, podTimeout,
		fmt.Errorf("the Pod %s was not ready after %s: see 'sandbox status'", key, podTimeout))
	defer cancel()
	err = wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		pod, err = s.client.CoreV1().Pods(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, fmt.Errorf("the Pod %s was deleted before it was ready", key)
		}
		return err == nil && podutil.IsPodReady(pod), nil
	})
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return pod, err
}

// ensureServiceAccount makes sure that the Pod's ServiceAccount exists. If the Pod names a
// ServiceAccount, it must already exist. Otherwise, ensureServiceAccount creates and returns a new
// account without permissions.
func (s podStarter) ensureServiceAccount(ctx context.Context, pod *corev1.Pod) (*corev1.ServiceAccount, error) {
	accounts := s.client.CoreV1().ServiceAccounts(pod.Namespace)
	if name := pod.Spec.ServiceAccountName; name != "" {
		_, err := accounts.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			err = fmt.Errorf("there is no ServiceAccount %s in the namespace %s: apply the manifest that has it first", name, pod.Namespace)
		}
		return nil, err
	}
	account, err := accounts.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{GenerateName: pod.GenerateName}}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("create a ServiceAccount: %w", err)
	}
	s.cleanups.add(func(ctx context.Context) error {
		if err := accounts.Delete(ctx, account.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("the ServiceAccount %s/%s is left: %w", account.Namespace, account.Name, err)
		}
		return nil
	})
	pod.Spec.ServiceAccountName = account.Name
	return account, nil
}

// watchDeletion returns a channel that receives the Pod's grace period when the Pod is deleted, for
// example by a user or an eviction. The program must then end, because its token is no longer
// valid.
func watchDeletion(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod, c *cleanups) <-chan time.Duration {
	deleted := make(chan time.Duration, 1)
	selector := fields.OneTermEqualSelector("metadata.name", pod.Name)
	pods := cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "pods", pod.Namespace, selector)
	grace := time.Duration(*pod.Spec.TerminationGracePeriodSeconds) * time.Second
	c.background(ctx, func(ctx context.Context) {
		_, err := watchtools.UntilWithSync(ctx, pods, &corev1.Pod{}, nil, func(e watch.Event) (bool, error) {
			p, ok := e.Object.(*corev1.Pod)
			return ok && (e.Type == watch.Deleted || p.DeletionTimestamp != nil), nil
		})
		if err == nil {
			deleted <- grace
		}
	})
	return deleted
}
