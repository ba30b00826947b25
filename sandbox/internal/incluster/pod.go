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

	"tidekeeper.dev/tidekeeper/sandbox/internal/claim"
	"tidekeeper.dev/tidekeeper/sandbox/internal/kubelet"
	"tidekeeper.dev/tidekeeper/sandbox/internal/node"
)

// DefaultCertDir is where programs made with controller-runtime expect the certificate by which
// they serve webhooks.
func DefaultCertDir() string {
	return filepath.Join(os.TempDir(), "k8s-webhook-server", "serving-certs")
}

// podTimeout is how long the Pod may take to become ready.
const podTimeout = 30 * time.Second

// MakePod makes the Pod that a program has in the cluster while this process lives, and returns it
// when it is ready, with the environment that its container declares. What is wrong with that
// environment is returned as a warning.
func MakePod(ctx context.Context, o Options) (pod *corev1.Pod, environment []string, warning, err error) {
	r := &run{Options: o}
	if r.client, err = kubernetes.NewForConfig(o.Config); err != nil {
		return nil, nil, nil, err
	}
	if o.From != "" {
		if r.deployment, err = findDeployment(ctx, r.client, o.From); err != nil {
			return nil, nil, nil, err
		}
	}
	if pod, err = r.newPod(ctx); err != nil {
		return nil, nil, nil, err
	}
	if pod, err = r.startPod(ctx, pod); err != nil {
		return nil, nil, nil, err
	}
	variables, warning := r.containerVariables(ctx, pod, container(pod))
	return pod, append(assignments(variables), "HOSTNAME="+pod.Name), warning, nil
}

// container returns the container of a Pod that the program is: the one that kubectl takes by
// default.
func container(pod *corev1.Pod) *corev1.Container {
	for i := range pod.Spec.Containers {
		if pod.Spec.Containers[i].Name == pod.Annotations[podcmd.DefaultContainerAnnotationName] {
			return &pod.Spec.Containers[i]
		}
	}
	return &pod.Spec.Containers[0]
}

// newPod describes the Pod of the program, which is not in the API server yet.
func (r *run) newPod(ctx context.Context) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	if r.deployment != nil {
		template := r.deployment.Spec.Template.DeepCopy()
		pod.Namespace = r.deployment.Namespace
		pod.GenerateName = r.deployment.Name + "-"
		pod.Labels, pod.Annotations = template.Labels, template.Annotations
		pod.Spec = template.Spec
		pod.Spec.ServiceAccountName = cmp.Or(pod.Spec.ServiceAccountName, "default")
		owner, err := r.replicaSet()
		if err != nil {
			return nil, err
		}
		pod.OwnerReferences = owner
	} else {
		name := podNameOf(r.Program[0])
		pod.Namespace = cmp.Or(r.ServiceAccount.Namespace, metav1.NamespaceDefault)
		pod.GenerateName = name + "-"
		pod.Spec.ServiceAccountName = r.ServiceAccount.Name
		pod.Spec.Containers = []corev1.Container{{
			Name: "program", Image: name,
			Env: []corev1.EnvVar{fieldVariable("POD_NAME", "metadata.name"), fieldVariable("POD_NAMESPACE", "metadata.namespace")},
			// It is allowed in every namespace.
			SecurityContext: &corev1.SecurityContext{
				RunAsNonRoot: new(true), AllowPrivilegeEscalation: new(false),
				Capabilities:   &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
		}}
	}
	var err error
	if pod.Spec.NodeName, err = r.readyNode(ctx); err != nil {
		return nil, err
	}
	asRunning(pod)
	return pod, nil
}

func fieldVariable(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: path}}}
}

// asRunning changes a Pod so that the simulated kubelet reports at once, and as long as
// it exists, that it is ready: the program runs, whatever the template says about how
// simulated containers behave.
func asRunning(pod *corev1.Pod) {
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	maps.DeleteFunc(pod.Annotations, func(key, _ string) bool { return strings.HasPrefix(key, kubelet.Prefix) })
	maps.Copy(pod.Annotations, kubelet.WithoutDelays())
	pod.Spec.InitContainers, pod.Spec.ReadinessGates, pod.Spec.SchedulingGates = nil, nil, nil
	// No taint of the node evicts it.
	pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
}

var notInName = regexp.MustCompile(`[^a-z0-9]+`)

// podNameOf makes the name of a program one that a Pod can have.
func podNameOf(program string) string {
	name := notInName.ReplaceAllString(strings.ToLower(filepath.Base(program)), "-")
	return cmp.Or(strings.Trim(name[:min(len(name), 50)], "-"), "program")
}

// replicaSet returns a reference to the ReplicaSet of the Deployment, if there is one, so
// that the program finds its Deployment. It does not say that the ReplicaSet is the
// controller, which would count the Pod as one of its own.
func (r *run) replicaSet() ([]metav1.OwnerReference, error) {
	if r.deployment.UID == "" {
		return nil, nil
	}
	_, _, current, err := deploymentutil.GetAllReplicaSets(r.deployment, r.client.AppsV1())
	if err != nil {
		return nil, fmt.Errorf("find the ReplicaSet of Deployment %s: %w", r.deployment.Name, err)
	}
	if current == nil {
		return nil, nil
	}
	return []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: current.Name, UID: current.UID}}, nil
}

// readyNode returns a node for the Pod. The scheduler is not asked: where the program
// runs does not depend on what room the nodes have.
func (r *run) readyNode(ctx context.Context) (string, error) {
	nodes, err := r.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", fmt.Errorf("list nodes: %w", err)
	}
	for i := range nodes.Items {
		if node.Schedulable(&nodes.Items[i]) {
			return nodes.Items[i].Name, nil
		}
	}
	return "", fmt.Errorf("the sandbox has no ready node for the program: add one with 'sandbox nodes add'")
}

// startPod creates the Pod, with a ServiceAccount if it has none, and returns it when it
// is ready.
func (r *run) startPod(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	account, err := r.ensureServiceAccount(ctx, pod)
	if err != nil {
		return nil, err
	}
	// The kubelet removes a Pod whose program has ended, if this process cannot.
	name := "program-" + string(uuid.NewUUID())
	if _, err := claim.Take(name); err != nil {
		return nil, fmt.Errorf("name the program: %w", err)
	}
	pod.Annotations[kubelet.ProgramAnnotation] = name
	created, err := r.client.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("create the Pod of the program: %w", err)
	}
	key := types.NamespacedName{Namespace: created.Namespace, Name: created.Name}
	r.onEnd(func(ctx context.Context) error {
		// The program has ended: there is nothing to wait for.
		err := r.client.CoreV1().Pods(key.Namespace).Delete(ctx, key.Name, metav1.DeleteOptions{
			GracePeriodSeconds: new(int64(0)), Preconditions: &metav1.Preconditions{UID: &created.UID},
		})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("the Pod %s is left: %w", key, err)
		}
		return nil
	})
	if account != nil {
		// It goes with the Pod, whatever becomes of this process.
		account.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: created.Name, UID: created.UID}}
		if _, err := r.client.CoreV1().ServiceAccounts(key.Namespace).Update(ctx, account, metav1.UpdateOptions{}); err != nil {
			return nil, fmt.Errorf("the ServiceAccount %s: %w", account.Name, err)
		}
	}
	return r.awaitReady(ctx, key)
}

// awaitReady returns the Pod when it is ready.
func (r *run) awaitReady(ctx context.Context, key types.NamespacedName) (pod *corev1.Pod, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, podTimeout,
		fmt.Errorf("the Pod %s was not ready after %s: see 'sandbox status'", key, podTimeout))
	defer cancel()
	err = wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		pod, err = r.client.CoreV1().Pods(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, fmt.Errorf("the Pod %s was deleted before it was ready", key)
		}
		return err == nil && ready(pod), nil
	})
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return pod, err
}

func ready(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// ensureServiceAccount makes sure that the ServiceAccount of the Pod exists. One that was
// named must; otherwise a new one without any rights is created and returned.
func (r *run) ensureServiceAccount(ctx context.Context, pod *corev1.Pod) (*corev1.ServiceAccount, error) {
	accounts := r.client.CoreV1().ServiceAccounts(pod.Namespace)
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
	r.onEnd(func(ctx context.Context) error {
		if err := accounts.Delete(ctx, account.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("the ServiceAccount %s/%s is left: %w", account.Namespace, account.Name, err)
		}
		return nil
	})
	pod.Spec.ServiceAccountName = account.Name
	return account, nil
}

// watchDeletion returns a channel that gets the grace period when the Pod is deleted, as
// by a person or an eviction. The token of a deleted Pod is not valid any more.
func (r *run) watchDeletion(ctx context.Context, pod *corev1.Pod) <-chan time.Duration {
	deleted := make(chan time.Duration, 1)
	selector := fields.OneTermEqualSelector("metadata.name", pod.Name)
	pods := cache.NewListWatchFromClient(r.client.CoreV1().RESTClient(), "pods", pod.Namespace, selector)
	grace := time.Duration(*pod.Spec.TerminationGracePeriodSeconds) * time.Second
	r.background(ctx, func(ctx context.Context) {
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
