// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package component

import "k8s.io/kubernetes/cmd/kube-controller-manager/names"

// Controllers lists the controllers in the controller manager in alphabetical order. It is a copy
// of the controller manager's own list, because a package that imports the controller manager takes
// minutes to compile. A test in package programs checks that both lists are equal.
var Controllers = []string{
	names.BootstrapSignerController,
	names.CertificateSigningRequestApprovingController,
	names.CertificateSigningRequestCleanerController,
	names.CertificateSigningRequestSigningController,
	names.ClusterRoleAggregationController,
	names.CronJobController,
	names.DaemonSetController,
	names.DeploymentController,
	names.DeviceTaintEvictionController,
	names.DisruptionController,
	names.EndpointsController,
	names.EndpointSliceController,
	names.EndpointSliceMirroringController,
	names.EphemeralVolumeController,
	names.GarbageCollectorController,
	names.HorizontalPodAutoscalerController,
	names.JobController,
	names.KubeAPIServerClusterTrustBundlePublisherController,
	names.LegacyServiceAccountTokenCleanerController,
	names.NamespaceController,
	names.NodeIpamController,
	names.NodeLifecycleController,
	names.PersistentVolumeAttachDetachController,
	names.PersistentVolumeBinderController,
	names.PersistentVolumeExpanderController,
	names.PersistentVolumeProtectionController,
	names.PersistentVolumeClaimProtectionController,
	names.PodGarbageCollectorController,
	names.PodCertificateRequestCleanerController,
	names.PodGroupProtectionController,
	names.ReplicaSetController,
	names.ReplicationControllerController,
	names.ResourceClaimController,
	names.ResourcePoolStatusRequestController,
	names.ResourceQuotaController,
	names.RootCACertificatePublisherController,
	names.SELinuxWarningController,
	names.ServiceCIDRController,
	names.ServiceAccountController,
	names.ServiceAccountTokenController,
	names.StatefulSetController,
	names.StorageVersionMigratorController,
	names.StorageVersionGarbageCollectorController,
	names.TaintEvictionController,
	names.TokenCleanerController,
	names.TTLAfterFinishedController,
	names.TTLController,
	names.ValidatingAdmissionPolicyStatusController,
	names.VolumeAttributesClassProtectionController,
}
