// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	authenticationv1client "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
	"tidekeeper.dev/tidekeeper/internal/cli/freezes"
	"tidekeeper.dev/tidekeeper/internal/cli/pools"
	"tidekeeper.dev/tidekeeper/internal/cli/restarts"
	"tidekeeper.dev/tidekeeper/internal/dashboard"
	"tidekeeper.dev/tidekeeper/internal/drain"
	"tidekeeper.dev/tidekeeper/internal/kube/lists"
	"tidekeeper.dev/tidekeeper/internal/text"
	"tidekeeper.dev/tidekeeper/internal/view"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// askWithin is the time limit for the requests to the API server that serving a page requires.
const askWithin = 3 * time.Second

// cluster is a cluster that the dashboard shows, with the connection to its API server.
type cluster struct {
	*cmdutil.Env
	client client.WithWatch
	about  dashboard.About
	config *rest.Config
	// keeper drops the fields of watched objects that no page uses.
	keeper keeper
	// timeout is the value of --request-timeout. It is 0 if the flag is not set.
	timeout time.Duration
}

// newCluster returns the cluster that the environment e connects to. It sends no requests.
func (o *options) newCluster(e *cmdutil.Env) (*cluster, error) {
	config, err := e.Kubeconfig.Config()
	if err != nil {
		return nil, err
	}
	// Each watch is a single long request, which must not time out.
	config, timeout := cmdutil.WithoutTimeout(config)
	c := &cluster{Env: e, config: config, timeout: timeout}
	if c.client, err = cmdutil.ClientFor(config); err != nil {
		return nil, err
	}
	c.about = dashboard.About{Server: config.Host}
	if raw, err := e.Kubeconfig.Flags.ToRawKubeConfigLoader().RawConfig(); err == nil {
		c.about.Context = cmp.Or(*e.Kubeconfig.Flags.Context, raw.CurrentContext)
	}
	if !o.allNamespaces {
		c.about.Namespace = *e.Kubeconfig.Flags.Namespace
	}
	return c, nil
}

// user returns the name by which the API server knows the user. It fails if the API server is
// unreachable, or if the namespace of -n does not exist.
func (c *cluster) user(ctx context.Context) (string, error) {
	if err := cmdutil.NamespaceExists(ctx, c.client, c.about.Namespace); err != nil {
		return "", err
	}
	return userOf(ctx, c.config)
}

// userOf returns the name by which the API server knows the user.
func userOf(ctx context.Context, config *rest.Config) (string, error) {
	api, err := authenticationv1client.NewForConfig(config)
	if err != nil {
		return "", err
	}
	review, err := api.SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return review.Status.UserInfo.Username, nil
}

// kinds returns the definitions of all kinds that pages may need.
func (c *cluster) kinds() []dashboard.Kind {
	kinds := []dashboard.Kind{
		c.kind("nodepools", &tidekeeperv1.NodePool{}, "", func() client.ObjectList { return &tidekeeperv1.NodePoolList{} }),
		c.kind("nodes", &corev1.Node{}, "", func() client.ObjectList { return &corev1.NodeList{} }),
		c.pods("pods", ""),
		c.kind("scheduledrestarts", &tidekeeperv1.ScheduledRestart{}, c.about.Namespace, func() client.ObjectList { return &tidekeeperv1.ScheduledRestartList{} }),
	}
	if namespace := c.about.Namespace; namespace != "" {
		kinds = append(kinds, c.pods(dashboard.KindOwnPods, namespace))
	}
	// The kinds Freeze and NodeMaintenance are optional, because the installed CRDs may be older
	// than the plugin.
	for _, kind := range []dashboard.Kind{
		c.kind("freezes", &tidekeeperv1.Freeze{}, "", func() client.ObjectList { return &tidekeeperv1.FreezeList{} }),
		c.kind("nodemaintenances", &tidekeeperv1.NodeMaintenance{}, "", func() client.ObjectList { return &tidekeeperv1.NodeMaintenanceList{} }),
	} {
		kind.Optional = true
		kind.Source = unlessUnserved(kind.Source, c.config, tidekeeperv1.SchemeGroupVersion.WithResource(kind.Name))
		kinds = append(kinds, kind)
	}
	kinds = append(kinds, c.kind("namespaces", &corev1.Namespace{}, "", func() client.ObjectList { return &corev1.NamespaceList{} }))
	for _, k := range workload.Kinds {
		kind := c.kind(k.Resource, k.New(), c.about.Namespace, func() client.ObjectList { return cmdutil.NewList(k) })
		if kind.Optional = k.Optional; k.Optional {
			kind.Source = unlessUnserved(kind.Source, c.config, k.GroupVersion().WithResource(k.Resource))
		}
		kinds = append(kinds, kind)
	}
	return kinds
}

// kind returns the definition of a watched kind. If namespace is not empty, only the objects in
// this namespace are watched.
func (c *cluster) kind(name string, object runtime.Object, namespace string, list func() client.ObjectList) dashboard.Kind {
	options := func(o metav1.ListOptions) *client.ListOptions {
		return &client.ListOptions{Namespace: namespace, Limit: o.Limit, Continue: o.Continue, Raw: &o}
	}
	return dashboard.Kind{
		Name: name, Object: object, Keep: c.keeper.keep,
		Source: &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				objects := list()
				return objects, c.client.List(ctx, objects, options(o))
			},
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				return c.client.Watch(ctx, list(), options(o))
			},
		},
		Explain: func(err error) string { return explain(name, err) },
		Check:   c.check(name, object, namespace),
	}
}

// check returns the kubectl command with which the user can check the permission to list a kind. If
// the given namespace is "", the command covers all namespaces.
func (c *cluster) check(resource string, object runtime.Object, namespace string) string {
	words := []string{"kubectl", "auth", "can-i", "list", resource}
	if gvk, err := apiutil.GVKForObject(object, c.client.Scheme()); err == nil && gvk.Group != "" {
		words[4] += "." + gvk.Group
	}
	clusterScoped := slices.Contains([]string{"nodepools", "nodes", "freezes", "nodemaintenances", "namespaces"}, resource)
	switch {
	case namespace != "":
		words = append(words, "--namespace", namespace)
	case !clusterScoped:
		words = append(words, "--all-namespaces")
	}
	if user := c.Kubeconfig.Flags.Impersonate; user != nil && *user != "" {
		words = append(words, "--as", *user)
	}
	if context := c.Kubeconfig.Flags.Context; context != nil && *context != "" {
		words = append(words, "--context", *context)
	}
	return dashboard.Command(words)
}

// pods returns the definition of the watched kind Pod. If namespace is not empty, only the pods in
// this namespace are watched.
func (c *cluster) pods(name, namespace string) dashboard.Kind {
	return dashboard.Kind{
		Name: name, Object: &corev1.Pod{}, Source: &podSource{client: c.client, namespace: namespace, keeper: &c.keeper},
		Explain: func(err error) string { return explain("pods", err) },
		Check:   c.check("pods", &corev1.Pod{}, namespace),
	}
}

// source returns the functions with which pages read data that is not watched and, if withActions
// is set, the functions of the pages' buttons.
func (c *cluster) source(withActions bool) dashboard.Cluster {
	s := dashboard.Cluster{Metrics: c.metrics, Events: c.events, Manager: c.manager, PodLike: c.podLike, Drain: c.drain}
	if withActions {
		s.Actions = &actions{restarts.Actions{Env: c.Env, Client: c.client}, freezes.Actions{Env: c.Env, Client: c.client}}
	}
	return s
}

func (c *cluster) metrics(ctx context.Context) view.NodeMetrics {
	metrics, err := pools.ReadMetrics(ctx, c.Env, c.client)
	if err != nil {
		return view.NodeMetrics{Problem: explain("metrics", err)}
	}
	return metrics
}

func (c *cluster) events(ctx context.Context, about dashboard.ObjectRef) ([]corev1.Event, error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	fields := client.MatchingFields{"involvedObject.kind": about.Kind, "involvedObject.name": about.Name}
	if about.UID != "" {
		fields["involvedObject.uid"] = string(about.UID)
	}
	list := &corev1.EventList{}
	if err := c.client.List(ctx, list, client.InNamespace(about.Namespace), fields); err != nil {
		return nil, errors.New(c.unread("events", &corev1.Event{}, about.Namespace, err))
	}
	return list.Items, nil
}

// unread explains why the objects of a kind could not be listed. If the user lacks the permission,
// the explanation names the command that checks the permission. The namespace is "" for all
// namespaces.
func (c *cluster) unread(resource string, object runtime.Object, namespace string, err error) string {
	problem := explain(resource, err)
	if apierrors.IsForbidden(err) {
		problem += ", as " + c.check(resource, object, namespace) + " shows"
	}
	return problem
}

// drain returns the pods that block draining the given node, as `kubectl tide pools blockers`
// prints them. others lists all nodes of the cluster, which show where volumes are usable.
func (c *cluster) drain(ctx context.Context, node *corev1.Node, others []*corev1.Node, now time.Time) (d dashboard.Drain) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	world, unread, err := pools.ReadDrainWorld(ctx, c.client, others)
	if err != nil {
		d.Problem = c.unread("poddisruptionbudgets", &policyv1.PodDisruptionBudget{}, "", err)
		return d
	}
	if unread != nil {
		d.NoVolumes = explain("persistentvolumes", unread)
	}
	list := &corev1.PodList{}
	if err := c.client.List(ctx, list, client.MatchingFields{"spec.nodeName": node.Name}); err != nil {
		d.Problem = explain("pods", err)
		return d
	}
	running := lists.Pointers(list.Items)
	d.Pods, d.Blockers = drain.Leaving(running), world.Blockers(node, running, now)
	return d
}

// podLike returns the pod that `kubectl tide pools fit --like` evaluates. It sends a dry-run create
// request. It also explains which defaults the API server did not set on the pod; "" if it set all.
func (c *cluster) podLike(ctx context.Context, namespace, like string) (*corev1.Pod, string, error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	var err error
	if namespace == "" {
		if namespace, err = c.Kubeconfig.Namespace(false); err != nil {
			return nil, "", err
		}
	}
	pod, lacks, err := pools.PodLike(ctx, c.client, namespace, like)
	if err != nil {
		_, message := cmdutil.ExplainError(err)
		return nil, "", errors.New(text.Shorten(strings.TrimLeft(message, "-"), longestProblem))
	}
	return pod, lacks, nil
}

// manager returns the state of the manager. The state is unknown if the leases cannot be read
// within askWithin.
func (c *cluster) manager(ctx context.Context) view.Manager {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	m, err := cmdutil.Manager(ctx, c.Env, c.client)
	if err != nil {
		return view.Manager{}
	}
	return m
}

// actions implements [dashboard.Actions] with the code of the commands restarts, freeze and thaw.
// It checks permissions by access reviews.
type actions struct {
	restarts.Actions
	freezes freezes.Actions
}

// Freeze implements [dashboard.Actions].
func (a *actions) Freeze(ctx context.Context, namespaces []string, until, reason string) (string, error) {
	return a.freezes.Freeze(ctx, namespaces, until, reason)
}

// Thaw implements [dashboard.Actions].
func (a *actions) Thaw(ctx context.Context, name string, uid types.UID) (string, error) {
	return a.freezes.Thaw(ctx, name, uid)
}

// Allowed implements [dashboard.Actions].
func (a *actions) Allowed(ctx context.Context, right dashboard.Right) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
		Group: tidekeeperv1.SchemeGroupVersion.Group, Resource: right.Resource, Verb: right.Verb, Namespace: right.Namespace, Name: right.Name,
	}}}
	err := a.Client.Create(ctx, review)
	return review.Status.Allowed, err
}

// explain formats the API server's error about reading a kind as a single line.
func explain(kind string, err error) string {
	switch {
	case apierrors.IsForbidden(err):
		return "not allowed to list " + kind
	case apierrors.IsNotFound(err):
		return "the cluster does not serve " + kind
	}
	_, message := cmdutil.ExplainError(err)
	return text.Shorten(message, longestProblem)
}

// longestProblem is the maximum length, in bytes, of an API server's error message on a page.
const longestProblem = 200
