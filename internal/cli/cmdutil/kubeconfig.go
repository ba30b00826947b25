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

// answerWithin is the default time limit for reading each cluster if a command reads several. The
// flag --request-timeout overrides it.
const answerWithin = 10 * time.Second

// Kubeconfig is the user's kubeconfig, with overrides from kubectl's connection flags such as
// --context.
type Kubeconfig struct {
	Flags *genericclioptions.ConfigFlags
}

// Client returns a client for the cluster that the connection flags select.
func (k *Kubeconfig) Client() (client.WithWatch, error) {
	config, err := k.Config()
	if err != nil {
		return nil, err
	}
	return ClientFor(config)
}

// Config returns the client configuration of the cluster that the connection flags select.
func (k *Kubeconfig) Config() (*rest.Config, error) {
	if raw, err := k.Flags.ToRawKubeConfigLoader().RawConfig(); err == nil && len(raw.Clusters) == 0 &&
		*k.Flags.APIServer == "" && os.Getenv("KUBERNETES_SERVICE_HOST") == "" {
		// Without this error, client-go would fall back to localhost:8080.
		return nil, clientcmd.ErrEmptyConfig
	}
	config, err := k.Flags.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	config.UserAgent = "kubectl-tide/" + version.String()
	config.QPS = -1 // no client-side rate limit, because a command sends few requests while the user waits
	return config, nil
}

// Namespace returns the namespace from the flags or the kubeconfig. It returns "", for all
// namespaces, if all is true.
func (k *Kubeconfig) Namespace(all bool) (string, error) {
	if all {
		return "", nil
	}
	namespace, _, err := k.Flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		// Report kubeconfig errors with the same message as Config.
		if _, configErr := k.Config(); configErr != nil {
			return "", configErr
		}
	}
	return namespace, err
}

// contextNames returns the kubeconfig's context names, sorted.
func (k *Kubeconfig) contextNames() ([]string, error) {
	raw, err := k.Flags.ToRawKubeConfigLoader().RawConfig()
	if err == nil && len(raw.Contexts) == 0 {
		err = clientcmd.ErrEmptyConfig
	}
	return slices.Sorted(maps.Keys(raw.Contexts)), err
}

// ForContext returns a copy of k that uses another context. It drops the flags that apply to a
// single cluster, such as --token.
func (k *Kubeconfig) ForContext(name string) Kubeconfig {
	flags := genericclioptions.NewConfigFlags(true)
	flags.CacheDir, flags.DisableCompression = nil, nil
	flags.KubeConfig, flags.Namespace, flags.Timeout, flags.Insecure, flags.ProxyURL = k.Flags.KubeConfig, k.Flags.Namespace, k.Flags.Timeout, k.Flags.Insecure, k.Flags.ProxyURL
	flags.Impersonate, flags.ImpersonateUID = k.Flags.Impersonate, k.Flags.ImpersonateUID
	flags.ImpersonateGroup, flags.ImpersonateUserExtra = k.Flags.ImpersonateGroup, k.Flags.ImpersonateUserExtra
	flags.Context = &name
	return Kubeconfig{flags}
}

// answerWithin returns the time limit for reading each cluster if a command reads several: the
// value of --request-timeout, or the default.
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
