"""The description from which workers build an environment, checked before a run starts."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import gymnasium
from gymnasium import error
from gymnasium.envs.registration import EnvSpec, load_env_creator
from gymnasium.wrappers import TimeLimit

from escalade.envs.backends import BACKENDS
from escalade.envs.batched import BatchedSpec, refuse_device
from escalade.envs.envpool.worlds import BACKEND, WorldSpec, find_world
from escalade.envs.lookup import FactorySpec, described, find_spec, is_gymnasiums_own
from escalade.envs.masks import LegalActions, mask_in_info
from escalade.envs.objects import Bullet, EarlyEnd, is_bullet
from escalade.envs.pixels.frames import Frames
from escalade.envs.pixels.wrappers import frame_limit, is_atari
from escalade.envs.process import closed_at_end, closed_on_error, headless, mujoco_quiet, quiet
from escalade.envs.providers import lacking
from escalade.envs.spaces import check_observation_space, plain
from escalade.envs.structured import readable
from escalade.envs.wrapping import Wrapper, find, info_number, wrap
from escalade.errors import EnvironmentFailure, InputError, in_words
from escalade.support.registry import named

DEFAULT_LIMIT = 5000
"""Step limit of environments that have none, in training and evaluation."""
_NEVER = 10**9  # steps
_NEED_FRESH = {
    # It makes its Box2D world once per object and empties it on reset. The results of the solver depend on
    # the past use of the world's memory: a replay differs by rounding at first, then completely.
    "gymnasium.envs.box2d.bipedal_walker",
    # It resets the robot in the same world, whose contacts and solver depend on earlier episodes.
    "pybullet_envs_gymnasium.gym_locomotion_envs",
}

_NO_ENV = ("The environment must inherit from", "Gym is incompatible")
"""Beginnings of Gymnasium's messages about objects that are not a ``gymnasium.Env``."""
_REFUSALS = (TypeError, ValueError, AssertionError)


@dataclass(frozen=True)
class Environment:
    """Everything that determines an episode besides its seed and its policy."""

    spec: EnvSpec
    kwargs: dict[str, Any]
    backend: str
    max_episode_steps: int | None
    observation_space: gymnasium.Space[Any]
    action_space: gymnasium.Space[Any]
    fresh: bool = False
    """True if every episode runs in a new environment object."""
    frames: Frames = Frames()
    """Processing of images and frames."""
    early_end: int | tuple[int, ...] | None = None
    """Steps of negative reward that end an episode; see :class:`EarlyEnd`."""
    wrappers: tuple[Wrapper, ...] = ()
    """Wrappers around the environment, innermost first."""
    reward_info: str | None = None
    """Entry of a step's info that training uses as the reward."""
    info_keys: tuple[str, ...] = ()
    """Entries of an episode's last info that are reported."""
    behavior_keys: tuple[str, ...] = ()
    """The ``info_keys`` that only the option ``behavior`` needs."""
    text_parts: tuple[str, ...] = ()
    """Names of the text parts of observations, which are dropped."""
    forgiving: bool = False
    """True if an exception of the environment ends the episode with a reward of NaN, not the run."""
    num_envs: int | None = None
    """Maximum number of episodes that one process runs at once. None leaves it to the backend."""
    device: str = "cpu"
    """Device of a batched world."""

    @property
    def id(self) -> str:
        """Registered id."""
        return self.spec.id

    @property
    def module(self) -> str:
        """Module that defines the environment's class or function."""
        return _module_of(self.spec)

    @property
    def exclusive(self) -> bool:
        """True if only one backend has the environment, and it is not Gymnasium's."""
        return isinstance(self.spec, WorldSpec | BatchedSpec)

    @property
    def batched(self) -> bool:
        """True if ``num_envs`` episodes step together; see :mod:`escalade.envs.batched`."""
        return isinstance(self.spec, BatchedSpec)

    @property
    def plain(self) -> bool:
        """True if frames are not processed and episodes do not end early."""
        return self.frames.off and self.early_end is None

    def option_of(self, key: str) -> str:
        """Return the name of the option that requested this entry of an info."""
        return "behavior" if key in self.behavior_keys else "info_keys"

    def make(self, render_mode: str | None = None) -> gymnasium.Env[Any, Any]:
        """Make one Gymnasium environment with its wrappers. Images have their channels first."""
        if isinstance(self.spec, BatchedSpec):
            return self.spec.one(self, render_mode)
        extra = {} if render_mode is None else self._rendering(render_mode)
        own, outer = self.limits
        with quiet(), mujoco_quiet() if "mujoco" in str(self.spec.entry_point) else nullcontext():
            env = self._made(own, extra)
            env = wrap(Bullet(env) if is_bullet(self.spec) else env, self.wrappers)
            with closed_on_error(env):
                env = self.frames.wrap(readable(mask_in_info(env)), self.spec)
                env = env if self.early_end is None else EarlyEnd(env, self.early_end, self.reward_info)
        return env if outer is None else TimeLimit(env, outer)

    def _made(self, limit: int | None, extra: dict[str, Any]) -> gymnasium.Env[Any, Any]:
        kwargs = copy.deepcopy(self.kwargs)  # the environment may store and change them
        if isinstance(self.spec, WorldSpec):
            return self.spec.build(kwargs, limit, extra)
        if not isinstance(self.spec, FactorySpec):
            arguments = self.frames.kwargs(self.spec) | kwargs | extra
            return gymnasium.make(self.spec, limit, disable_env_checker=True, **arguments)
        made = self.spec.factory(**kwargs | extra)
        if not isinstance(made, gymnasium.Env):
            raise InputError(f"environment {self.id} {described(made)}")
        return made if limit is None else TimeLimit(made, limit)

    @property
    def limits(self) -> tuple[int | None, int | None]:
        """Step limits of an episode: in steps of the environment object, and in steps of the policy.

        None as the first means the registered limit, None as the second no limit. They differ if frames are
        skipped, if episodes start with no-ops, and if there are wrappers that process frames.
        """
        limit, registered = self.max_episode_steps, self.spec.max_episode_steps
        if limit is None or (self.plain and not is_atari(self.spec)):
            return limit, None
        if registered is None:  # EnvPool may have a limit that its registration does not contain
            return _NEVER if self.exclusive else None, limit
        later = limit > math.ceil(registered / self.frames.outer_skip(self.spec))
        return _NEVER if later else None, limit

    def _rendering(self, render_mode: str) -> dict[str, Any]:
        arguments = {"render_mode": render_mode}
        follows = str(self.spec.entry_point).startswith("gymnasium.envs.mujoco")
        if follows and not {"camera_name", "camera_id"} & self.kwargs.keys():
            # Gymnasium's default camera does not move, but a cheetah does.
            arguments["camera_name"] = "track"
        return arguments


def resolve(
    env_id: str,
    kwargs: dict[str, Any] | None = None,
    backend: str = "auto",
    max_episode_steps: int | None = None,
    fresh_environments: bool = False,
    wrappers: Sequence[str] = (),
    reward_info: str | None = None,
    frames: Frames | None = None,
    early_end: int | tuple[int, ...] | None = None,
    info_keys: Sequence[str] = (),
    behavior_keys: Sequence[str] = (),
    device: str = "cpu",
    num_envs: int | None = None,
    generation: int = 1,
) -> Environment:
    """Find an environment, build it once to read its spaces, and check that it is supported.

    Args:
        env_id: a registered id; ``package.module:Id-v0``, which imports the module first; or
            ``package.module:name``, a class, or a function that returns an environment.
        kwargs: arguments of its constructor.
        backend: a key of :data:`escalade.envs.backends.BACKENDS`, or ``auto``.
        max_episode_steps: truncate episodes after this many steps. Defaults to the registered limit.
        fresh_environments: build a new object for every episode. This is needed if an object carries state
            from one episode to the next. It is always on for ids that are known to need it.
        wrappers: wrappers in the form of :func:`escalade.envs.wrapping.parse`.
        reward_info: entry of a step's info that training uses as the reward.
        frames: processing of images and frames. Defaults to none.
        early_end: steps of negative reward that end an episode; see :class:`EarlyEnd`.
        info_keys: entries of an episode's last info that are reported.
        behavior_keys: further entries, needed by the option ``behavior``.
        device: device of a batched world.
        num_envs: maximum number of episodes that one process runs at once; for a batched world, its size.
        generation: size of a batched world if ``num_envs`` is None.

    Raises:
        InputError: unknown id, missing package, unsupported space, invalid arguments, or a missing wrapper
            or entry of info.
        EnvironmentFailure: the environment's constructor raised.
    """
    kwargs = dict(kwargs or {})
    further = tuple(dict.fromkeys(key for key in behavior_keys if key not in info_keys))
    headless()  # before a module of the user imports graphics libraries
    spec = find_spec(env_id)
    if backend != "auto":
        named("backend", backend, BACKENDS).check_installed("backend")
    bare = Environment(
        spec,
        kwargs,
        backend,
        max_episode_steps,
        gymnasium.Space(),
        gymnasium.Space(),
        wrappers=find(wrappers),
        reward_info=reward_info,
        frames=frames or Frames(),
        early_end=early_end,
        info_keys=(*info_keys, *further),
        behavior_keys=further,
        device=device,
        num_envs=num_envs,
    )
    if isinstance(spec, BatchedSpec):
        found: Environment = spec.resolved(replace(bare, num_envs=num_envs or generation))
        return found
    refuse_device(env_id, device)
    bare, env = _first(bare, env_id)
    spec = bare.spec
    if bare.exclusive and backend not in ("auto", BACKEND):
        raise InputError(f"`backend` {backend} has no {spec.id}, which only EnvPool has: remove `backend`")
    limit = max_episode_steps or registered_limit(env, bare.frames.outer_skip(spec))
    observation, action = plain(env.observation_space), plain(env.action_space)
    with closed_at_end(env):
        check_observation_space(observation)
        # Wrappers may add entries. In that case, missing ones are reported after the first episodes.
        known = env.unwrapped.infos if bare.exclusive and not wrappers else bare.info_keys  # type: ignore[attr-defined]
        if unknown := [key for key in bare.info_keys if key not in known]:
            raise InputError(
                f"`{bare.option_of(unknown[0])}` {unknown[0]}: EnvPool's info of {spec.id} has no such "
                f"entry, only {', '.join(known) or 'none'}"
            )
        if reward_info is not None:
            info_number(_first_step_info(env, env_id), reward_info)
    return replace(
        bare,
        backend=BACKEND if bare.exclusive else backend,
        max_episode_steps=limit,
        observation_space=observation,
        action_space=action,
        text_parts=env.get_wrapper_attr("text_parts") if env.has_wrapper_attr("text_parts") else (),
        fresh=fresh_environments or needs_fresh(spec),
    )


def registered_limit(env: gymnasium.Env[Any, Any], skip: int) -> int | None:
    """Return the step limit of an environment, in policy steps of ``skip`` environment steps each.

    The environment of a factory is not registered. Its limit is that of a TimeLimit, if this is the outermost
    wrapper. A TimeLimit further inside may not end the episode.
    """
    if env.spec is None:
        return int(env._max_episode_steps) if isinstance(env, TimeLimit) else None
    steps = env.spec.max_episode_steps or frame_limit(env.spec)
    return None if steps is None else math.ceil(steps / skip)


def _first(bare: Environment, env_id: str) -> tuple[Environment, gymnasium.Env[Any, Any]]:
    """Build ``bare`` once. If Gymnasium has only the id left, use EnvPool's environment of that id."""
    spec, kwargs = bare.spec, bare.kwargs
    try:
        return bare, bare.make()
    except InputError:
        raise
    except error.DependencyNotInstalled as problem:
        raise InputError(f"environment {env_id} {lacking(spec, problem)}") from problem
    except (ImportError, error.DeprecatedEnv) as problem:
        # Gymnasium registers a function of gymnasium.envs for environments that it has removed.
        known = is_gymnasiums_own(spec) or _module_of(spec) == "gymnasium.envs"
        world = find_world(spec.id) if known else None
        if world is not None:
            return _first(replace(bare, spec=world), env_id)
        raise InputError(f"environment {env_id} {lacking(spec, problem)}") from problem
    except (Exception, SystemExit) as problem:
        if isinstance(problem, TypeError) and str(problem).startswith(_NO_ENV):
            entry: Any = spec.entry_point
            made = load_env_creator(entry) if isinstance(entry, str) else entry
            made = made if isinstance(made, type) else made(**spec.kwargs | kwargs)
            raise InputError(f"environment {env_id} {described(made)}") from problem
        arguments = f" with `env_kwargs` {kwargs}" if kwargs else ""
        # Perhaps a missing argument, or a value that its constructor does not accept.
        refused = isinstance(problem, _REFUSALS if kwargs else TypeError)
        raise (InputError if refused else EnvironmentFailure)(
            f"environment {env_id} failed to start{arguments}: {in_words(problem)}"
        ) from problem


def first_info(environment: Environment) -> list[str]:
    """Return the names of the entries in the info of an episode's first step.

    Raises:
        EnvironmentFailure: the environment raised.
    """
    with closed_at_end(environment.make()) as env:
        return list(map(str, _first_step_info(env, environment.id)))


def _first_step_info(env: gymnasium.Env[Any, Any], env_id: str) -> dict[str, Any]:
    legal = LegalActions(env)
    try:
        legal.reset(seed=0)
        env.action_space.seed(0)
        info: dict[str, Any] = legal.step(env.action_space.sample())[4]
    except InputError:
        raise
    except (Exception, SystemExit) as problem:
        raise EnvironmentFailure(
            f"environment {env_id} failed in its first step: {in_words(problem)}"
        ) from problem
    return info


def needs_fresh(spec: EnvSpec) -> bool:
    """Return True if objects of this environment are known to carry state from one episode to the next."""
    return _module_of(spec) in _NEED_FRESH


def _module_of(spec: EnvSpec) -> str:
    entry = spec.entry_point
    return entry.partition(":")[0] if isinstance(entry, str) else getattr(entry, "__module__", "")
