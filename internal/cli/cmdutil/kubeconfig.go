// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdutil

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/internal/version"
)

// answerWithin is how long each of several clusters may take to answer; --request-timeout sets
// another time.
const answerWithin = 10 * time.Second

// Kubeconfig is the user's kubeconfig, with kubectl's connection flags on top.
type Kubeconfig struct {
	Flags *genericclioptions.ConfigFlags
}

// Client returns a client of the cluster that the flags name.
func (k *Kubeconfig) Client() (client.WithWatch, error) {
	config, err := k.Config()
	if err != nil {
		return nil, err
	}
	return ClientFor(config)
}

// Config returns the connection to the cluster that the flags name.
func (k *Kubeconfig) Config() (*rest.Config, error) {
	if raw, err := k.Flags.ToRawKubeConfigLoader().RawConfig(); err == nil && len(raw.Clusters) == 0 &&
		*k.Flags.APIServer == "" && os.Getenv("KUBERNETES_SERVICE_HOST") == "" {
		// Otherwise it would be localhost:8080, for reasons of history.
		return nil, clientcmd.ErrEmptyConfig
	}
	config, err := k.Flags.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	config.UserAgent = "kubectl-tide/" + version.String()
	config.QPS = -1 // a command sends few requests, and a person waits for them
	return config, nil
}

// Namespace returns the namespace that the flags and the kubeconfig name, and
// "" for all namespaces.
func (k *Kubeconfig) Namespace(all bool) (string, error) {
	if all {
		return "", nil
	}
	namespace, _, err := k.Flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		// A mistake in the kubeconfig has the same message either way.
		if _, configErr := k.Config(); configErr != nil {
			return "", configErr
		}
	}
	return namespace, err
}

// contextNames returns the contexts of the kubeconfig, sorted.
func (k *Kubeconfig) contextNames() ([]string, error) {
	raw, err := k.Flags.ToRawKubeConfigLoader().RawConfig()
	if err == nil && len(raw.Contexts) == 0 {
		err = clientcmd.ErrEmptyConfig
	}
	return slices.Sorted(maps.Keys(raw.Contexts)), err
}

// ForContext returns the kubeconfig with another context. Flags that are about a single cluster, such
// as --token, are left out.
func (k *Kubeconfig) ForContext(name string) Kubeconfig {
	flags := genericclioptions.NewConfigFlags(true)
	flags.CacheDir, flags.DisableCompression = nil, nil
	flags.KubeConfig, flags.Namespace, flags.Timeout, flags.Insecure, flags.ProxyURL = k.Flags.KubeConfig, k.Flags.Namespace, k.Flags.Timeout, k.Flags.Insecure, k.Flags.ProxyURL
	flags.Impersonate, flags.ImpersonateUID = k.Flags.Impersonate, k.Flags.ImpersonateUID
	flags.ImpersonateGroup, flags.ImpersonateUserExtra = k.Flags.ImpersonateGroup, k.Flags.ImpersonateUserExtra
	flags.Context = &name
	return Kubeconfig{flags}
}

// answerWithin returns how long a cluster may take to answer, as --request-timeout sets it.
func (k *Kubeconfig) answerWithin() (time.Duration, error) {
	timeout, err := clientcmd.ParseTimeout(*k.Flags.Timeout)
	if err != nil {
		return 0, fmt.Errorf("--request-timeout: %w", err)
	}
	if timeout > 0 {
		return timeout, nil
	}
	return answerWithin, nil
}
