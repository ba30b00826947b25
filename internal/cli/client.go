// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"os"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/migrate"
	"tidekeeper.dev/tidekeeper/internal/version"
)

// fieldManager is who managedFields say has written.
const fieldManager = "kubectl-tide"

var scheme = newScheme()

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(corev1.AddToScheme(s))
	utilruntime.Must(nodev1.AddToScheme(s))
	utilruntime.Must(tidekeeperv1.AddToScheme(s))
	return s
}

// newMapper returns the resources of the kinds that the plugin reads. They are
// known, so that the API server need not be asked for them each time.
func newMapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	ours, core := tidekeeperv1.SchemeGroupVersion, corev1.SchemeGroupVersion
	mapper.Add(ours.WithKind("ScheduledRestart"), meta.RESTScopeNamespace)
	mapper.Add(ours.WithKind("NodePool"), meta.RESTScopeRoot)
	mapper.Add(core.WithKind("Node"), meta.RESTScopeRoot)
	mapper.Add(core.WithKind("Pod"), meta.RESTScopeNamespace)
	mapper.Add(core.WithKind("Event"), meta.RESTScopeNamespace)
	mapper.Add(core.WithKind("Namespace"), meta.RESTScopeRoot)
	mapper.Add(migrate.NodePoolKind, meta.RESTScopeRoot)
	mapper.Add(migrate.EruKind, meta.RESTScopeNamespace)
	mapper.Add(migrate.DeploymentKind, meta.RESTScopeNamespace)
	mapper.Add(nodev1.SchemeGroupVersion.WithKind("RuntimeClass"), meta.RESTScopeRoot)
	return mapper
}

// client returns a client of the cluster that the flags name.
func (a *app) client() (client.WithWatch, error) {
	config, err := a.config()
	if err != nil {
		return nil, err
	}
	return client.NewWithWatch(config, client.Options{Scheme: scheme, Mapper: newMapper()})
}

// config says how to reach the cluster that the flags name.
func (a *app) config() (*rest.Config, error) {
	if raw, err := a.flags.ToRawKubeConfigLoader().RawConfig(); err == nil && len(raw.Clusters) == 0 &&
		*a.flags.APIServer == "" && os.Getenv("KUBERNETES_SERVICE_HOST") == "" {
		// Otherwise it would be localhost:8080, for reasons of history.
		return nil, clientcmd.ErrEmptyConfig
	}
	config, err := a.flags.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	config.UserAgent = "kubectl-tide/" + version.String()
	config.QPS = -1 // one command asks for little, and a person waits for it
	return config, nil
}

// namespace returns the namespace that the flags and the kubeconfig name, and
// "" for all of them.
func (a *app) namespace(all bool) (string, error) {
	if all {
		return "", nil
	}
	namespace, _, err := a.flags.ToRawKubeConfigLoader().Namespace()
	return namespace, err
}

// fromCache lets the API server answer with what it has in memory, in one piece:
// of nodes and pods there may be many, and a moment's delay does no harm.
func fromCache() client.ListOption {
	return &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: "0"}}
}

// fewNodes is how many nodes are asked for their pods one by one; for more, all
// pods of the cluster are read at once.
const fewNodes = 8

// running leaves out the pods that have ended, as nobody here counts them.
var running = client.MatchingFieldsSelector{Selector: fields.ParseSelectorOrDie("status.phase!=Succeeded,status.phase!=Failed")}

// podsOf returns the pods of these nodes, and perhaps others.
func podsOf(ctx context.Context, c client.Client, nodes []string) ([]corev1.Pod, error) {
	questions := []client.ListOption{}
	switch {
	case len(nodes) == 0:
		return nil, nil
	case len(nodes) > fewNodes:
		questions = append(questions, running)
	default:
		for _, node := range nodes {
			questions = append(questions, client.MatchingFields{"spec.nodeName": node})
		}
	}
	var all []corev1.Pod
	for _, question := range questions {
		pods := &corev1.PodList{}
		if err := c.List(ctx, pods, fromCache(), question); err != nil {
			return nil, err
		}
		all = append(all, pods.Items...)
	}
	return all, nil
}
