// Command bootstrapdata answers what Cluster API's kubeadm bootstrap provider makes of a KubeadmConfig.
//
// It reads a list of cases as JSON and prints a list of answers: the three kinds of bootstrap data in both formats, or one section of
// kubeadm's configuration alone.  What its reconciler does around the exported packages is done here in the same way.
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"os"

	"github.com/blang/semver/v4"
	corev1 "k8s.io/api/core/v1"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/bootstrap/kubeadm/pkg/cloudinit"
	"sigs.k8s.io/cluster-api/bootstrap/kubeadm/pkg/ignition"
	kubeadmtypes "sigs.k8s.io/cluster-api/bootstrap/kubeadm/pkg/types"
	"sigs.k8s.io/cluster-api/bootstrap/kubeadm/pkg/types/upstream"
	"sigs.k8s.io/cluster-api/util/certs"
	"sigs.k8s.io/cluster-api/util/secret"
)

type question struct {
	Name       string                        `json:"name"`
	Do         string                        `json:"do"`
	Version    string                        `json:"version"`
	Spec       bootstrapv1.KubeadmConfigSpec `json:"spec"`
	Additional struct {
		KubernetesVersion                       *string `json:"kubernetesVersion"`
		ClusterName                             *string `json:"clusterName"`
		DNSDomain                               *string `json:"dnsDomain"`
		ServiceSubnet                           *string `json:"serviceSubnet"`
		PodSubnet                               *string `json:"podSubnet"`
		ControlPlaneComponentHealthCheckSeconds *int32  `json:"controlPlaneComponentHealthCheckSeconds"`
	} `json:"additional"`
}

type answer struct {
	Name         string             `json:"name"`
	Value        string             `json:"value,omitempty"`
	Warnings     string             `json:"warnings,omitempty"`
	Error        string             `json:"error,omitempty"`
	Certificates []bootstrapv1.File `json:"certificates,omitempty"`
}

func main() {
	var questions []question
	decoder := json.NewDecoder(os.Stdin)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&questions); err != nil {
		log.Fatal(err)
	}
	answers := make([]answer, 0, len(questions))
	for i := range questions {
		a := answer{Name: questions[i].Name}
		if err := questions[i].answer(&a); err != nil {
			a = answer{Name: a.Name, Error: err.Error(), Certificates: a.Certificates}
		}
		answers = append(answers, a)
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(answers); err != nil {
		log.Fatal(err)
	}
}

func (q *question) answer(a *answer) (err error) {
	version, err := semver.ParseTolerant(q.Version)
	if err != nil {
		return fmt.Errorf("failed to parse kubernetes version %q: %w", q.Version, err)
	}
	switch q.Do {
	case "clusterConfiguration":
		a.Value, err = q.clusterConfiguration(version)
	case "initConfiguration":
		a.Value, err = kubeadmtypes.MarshalInitConfigurationForVersion(&q.Spec.InitConfiguration, version)
	case "joinConfiguration":
		a.Value, err = kubeadmtypes.MarshalJoinConfigurationForVersion(&q.Spec.JoinConfiguration, version)
	case "init":
		err = q.initControlPlane(version, a)
	case "control-plane":
		err = q.joinControlPlane(version, a)
	case "worker":
		err = q.joinWorker(version, a)
	default:
		err = fmt.Errorf("%s: nothing is known to do for %q", q.Name, q.Do)
	}
	return err
}

func (q *question) clusterConfiguration(version semver.Version) (string, error) {
	return kubeadmtypes.MarshalClusterConfigurationForVersion(&q.Spec.ClusterConfiguration, version, &upstream.AdditionalData{
		KubernetesVersion:                       q.Additional.KubernetesVersion,
		ClusterName:                             q.Additional.ClusterName,
		DNSDomain:                               q.Additional.DNSDomain,
		ServiceSubnet:                           q.Additional.ServiceSubnet,
		PodSubnet:                               q.Additional.PodSubnet,
		ControlPlaneComponentHealthCheckSeconds: q.Additional.ControlPlaneComponentHealthCheckSeconds,
	})
}

func (q *question) initControlPlane(version semver.Version, a *answer) error {
	cluster, err := q.clusterConfiguration(version)
	if err != nil {
		return err
	}
	first, err := kubeadmtypes.MarshalInitConfigurationForVersion(&q.Spec.InitConfiguration, version)
	if err != nil {
		return err
	}
	certificates := filled(secret.NewCertificatesForInitialControlPlane(&q.Spec.ClusterConfiguration))
	a.Certificates = certificates.AsFiles()
	input := &cloudinit.ControlPlaneInput{
		BaseUserData:         q.userData(version),
		Certificates:         certificates,
		ClusterConfiguration: cluster,
		InitConfiguration:    first,
	}
	var data []byte
	if q.Spec.Format == bootstrapv1.Ignition {
		data, a.Warnings, err = ignition.NewInitControlPlane(&ignition.ControlPlaneInput{ControlPlaneInput: input, Ignition: &q.Spec.Ignition})
	} else {
		data, err = cloudinit.NewInitControlPlane(input)
	}
	a.Value = string(data)
	return err
}

func (q *question) joinControlPlane(version semver.Version, a *answer) error {
	if q.Spec.JoinConfiguration.ControlPlane == nil {
		q.Spec.JoinConfiguration.ControlPlane = &bootstrapv1.JoinControlPlane{}
	}
	join, err := kubeadmtypes.MarshalJoinConfigurationForVersion(&q.Spec.JoinConfiguration, version)
	if err != nil {
		return err
	}
	certificates := filled(secret.NewControlPlaneJoinCerts(&q.Spec.ClusterConfiguration))
	a.Certificates = certificates.AsFiles()
	input := &cloudinit.ControlPlaneJoinInput{BaseUserData: q.userData(version), Certificates: certificates, JoinConfiguration: join}
	var data []byte
	if q.Spec.Format == bootstrapv1.Ignition {
		data, a.Warnings, err = ignition.NewJoinControlPlane(&ignition.ControlPlaneJoinInput{ControlPlaneJoinInput: input, Ignition: &q.Spec.Ignition})
	} else {
		data, err = cloudinit.NewJoinControlPlane(input)
	}
	a.Value = string(data)
	return err
}

func (q *question) joinWorker(version semver.Version, a *answer) error {
	join := q.Spec.JoinConfiguration.DeepCopy()
	taints := []corev1.Taint{}
	if join.NodeRegistration.Taints != nil {
		taints = *join.NodeRegistration.Taints
	}
	tainted := false
	for i := range taints {
		tainted = tainted || taints[i].MatchTaint(&clusterv1.NodeUninitializedTaint)
	}
	if !tainted {
		taints = append(taints, clusterv1.NodeUninitializedTaint)
		join.NodeRegistration.Taints = &taints
	}
	text, err := kubeadmtypes.MarshalJoinConfigurationForVersion(join, version)
	if err != nil {
		return err
	}
	if join.ControlPlane != nil {
		return fmt.Errorf("Machine is a Worker, but JoinConfiguration.ControlPlane is set in the KubeadmConfig object")
	}
	input := &cloudinit.NodeInput{BaseUserData: q.userData(version), JoinConfiguration: text}
	var data []byte
	if q.Spec.Format == bootstrapv1.Ignition {
		data, a.Warnings, err = ignition.NewNode(&ignition.NodeInput{NodeInput: input, Ignition: &q.Spec.Ignition})
	} else {
		data, err = cloudinit.NewNode(input)
	}
	a.Value = string(data)
	return err
}

func (q *question) userData(version semver.Version) cloudinit.BaseUserData {
	data := cloudinit.BaseUserData{
		AdditionalFiles:     q.Spec.Files,
		BootCommands:        q.Spec.BootCommands,
		PreKubeadmCommands:  q.Spec.PreKubeadmCommands,
		PostKubeadmCommands: q.Spec.PostKubeadmCommands,
		Users:               q.Spec.Users,
		Mounts:              q.Spec.Mounts,
		KubernetesVersion:   version,
	}
	if q.Spec.NTP.IsDefined() {
		data.NTP = &q.Spec.NTP
	}
	if q.Spec.DiskSetup.IsDefined() {
		data.DiskSetup = &q.Spec.DiskSetup
	}
	if q.Spec.Verbosity != nil {
		data.KubeadmVerbosity = fmt.Sprintf("--v %d", *q.Spec.Verbosity)
	}
	return data
}

// filled gives each certificate a text in place of its content: nothing here reads it.
func filled(certificates secret.Certificates) secret.Certificates {
	for _, certificate := range certificates {
		certificate.KeyPair = &certs.KeyPair{Cert: []byte(certificate.Purpose + " certificate\n")}
		if certificate.KeyFile != "" {
			certificate.KeyPair.Key = []byte(certificate.Purpose + " key\n")
		}
	}
	return certificates
}
