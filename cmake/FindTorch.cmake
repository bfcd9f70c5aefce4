# libtorch from the wheel of the Python in use: ELLIPTICAL_PYTHON, else the one that pip builds a
# package for, else the project's .venv.

if(NOT ELLIPTICAL_PYTHON)
  if(DEFINED ENV{ELLIPTICAL_PYTHON})
    set(ELLIPTICAL_PYTHON $ENV{ELLIPTICAL_PYTHON})
  elseif(SKBUILD)
    set(ELLIPTICAL_PYTHON ${Python_EXECUTABLE})
  else()
    set(ELLIPTICAL_PYTHON ${CMAKE_SOURCE_DIR}/.venv/bin/python)
  endif()
endif()

execute_process(
  COMMAND ${ELLIPTICAL_PYTHON} -c "import torch; print(torch.utils.cmake_prefix_path)"
  WORKING_DIRECTORY /  # where no folder is called torch
  OUTPUT_VARIABLE ELLIPTICAL_TORCH_PREFIX
  OUTPUT_STRIP_TRAILING_WHITESPACE
  RESULT_VARIABLE ELLIPTICAL_TORCH_FAILED)
if(ELLIPTICAL_TORCH_FAILED)
  message(FATAL_ERROR "torch: ${ELLIPTICAL_PYTHON} can not import it; run ./test or ./run once, they install it")
endif()

# The wheel's config asks for Kineto, which CPU builds do not ship; its warning is noise.
set(CMAKE_MESSAGE_LOG_LEVEL ERROR)
find_package(Torch 2.13 REQUIRED PATHS ${ELLIPTICAL_TORCH_PREFIX} NO_DEFAULT_PATH)
set(CMAKE_MESSAGE_LOG_LEVEL STATUS)
