// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
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
