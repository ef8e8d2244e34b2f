// The environment that rltools_sac.py trains on: the pendulum of RLtools itself.
#include <rl_tools/rl/environments/pendulum/operations_generic.h>

template <typename T, typename TI>
using ENVIRONMENT_FACTORY = rl_tools::rl::environments::Pendulum<rl_tools::rl::environments::pendulum::Specification<T, TI>>;
