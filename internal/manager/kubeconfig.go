// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"tidekeeper.dev/tidekeeper/internal/version"
)

// RESTConfig returns the configuration of the connection to the API server. It uses the first of
// these sources that is set or exists: the file in --kubeconfig, the files in KUBECONFIG,
// ~/.kube/config, and the pod's service account. Its errors name the invalid source.
func (o *Options) RESTConfig() (*rest.Config, error) {
	cfg, err := findConfig(o.Kubeconfig)
	if err != nil {
		return nil, err
	}

	// A negative QPS disables the client-side limit. The API server limits clients according to its
	// actual load, by its priority and fairness.
	cfg.QPS, cfg.Burst = -1, 0
	if o.KubeAPIQPS > 0 {
		cfg.QPS, cfg.Burst = float32(o.KubeAPIQPS), o.KubeAPIBurst
	}
	// The network to the API server is fast, whereas compression would cost the API server CPU
	// time.
	cfg.DisableCompression = true
	cfg.UserAgent = "tidekeeper/" + version.String()
	return cfg, nil
}

func findConfig(kubeconfig string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	env := os.Getenv(clientcmd.RecommendedConfigPathEnvVar)

	switch {
	case kubeconfig != "":
		// With an explicit path, clientcmd ignores all other sources. The path is checked here
		// because clientcmd's errors for a directory or an empty file are unclear.
		rules.ExplicitPath = kubeconfig
		if err := checkReadable(kubeconfig); err != nil {
			return nil, fmt.Errorf("--%s=%s: %w", FlagKubeconfig, kubeconfig, err)
		}
		return configFromFiles(rules, fmt.Sprintf("--%s=%s", FlagKubeconfig, kubeconfig))

	case env != "":
		// KUBECONFIG is a list of files. At least one of them must exist.
		source := clientcmd.RecommendedConfigPathEnvVar + "=" + env
		var firstErr error
		for _, file := range filepath.SplitList(env) {
			err := checkReadable(file)
			if err == nil {
				return configFromFiles(rules, source)
			}
			if firstErr == nil {
				firstErr = err
			}
		}
		return nil, fmt.Errorf("%s: %w", source, firstErr)
	}

	if checkReadable(clientcmd.RecommendedHomeFile) == nil {
		return configFromFiles(rules, clientcmd.RecommendedHomeFile)
	}
	cfg, err := rest.InClusterConfig()
	if errors.Is(err, rest.ErrNotInCluster) {
		return nil, fmt.Errorf("no cluster to talk to: there is no %s, KUBECONFIG is not set, and this is not a pod: use --%s=FILE",
			clientcmd.RecommendedHomeFile, FlagKubeconfig)
	}
	if err != nil {
		return nil, fmt.Errorf("the service account of this pod: %w", err)
	}
	return cfg, nil
}

func configFromFiles(rules *clientcmd.ClientConfigLoadingRules, source string) (*rest.Config, error) {
	loaded, err := rules.Load()
	if err != nil {
		return nil, fmt.Errorf("%s: not a kubeconfig: %w", source, err)
	}
	if clientcmdapi.IsConfigEmpty(loaded) {
		return nil, fmt.Errorf("%s: not a kubeconfig: it names no cluster", source)
	}
	cfg, err := clientcmd.NewNonInteractiveClientConfig(*loaded, "", &clientcmd.ConfigOverrides{}, rules).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	return cfg, nil
}

// checkReadable returns nil if path is a readable file. The error does not contain the path,
// because the caller's message does.
func checkReadable(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("no such file")
	case err == nil && info.IsDir():
		return errors.New("is a directory, not a file")
	}
	if err == nil {
		var f *os.File
		if f, err = os.Open(path); err == nil {
			return f.Close()
		}
	}
	if pathErr := (*fs.PathError)(nil); errors.As(err, &pathErr) {
		return pathErr.Err
	}
	return err
}
